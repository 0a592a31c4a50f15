// Shows a failure of the page as text, with a way out, instead of an empty window.
import { Component, type ReactNode } from "react";

interface Props {
  children: ReactNode;
  onLeave?: () => void;
}

interface State {
  error: Error | null;
}

export class ErrorBoundary extends Component<Props, State> {
  override state: State = { error: null };

  static getDerivedStateFromError(error: unknown): State {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <div className="failure" role="alert">
        <h2>This part of the page stopped</h2>
        <p>{error.message}</p>
        <p>
          Nothing that the agents did is lost: it is stored on the server and shown again after a
          reload.
        </p>
        <div className="failure-actions">
          <button type="button" className="button" onClick={() => window.location.reload()}>
            Reload the page
          </button>
          {this.props.onLeave && (
            <button type="button" className="button quiet" onClick={this.props.onLeave}>
              Back to the conversation
            </button>
          )}
        </div>
      </div>
    );
  }
}
