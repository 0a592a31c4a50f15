// Asks before everything goes: clearing cannot be undone.
import { useEffect, useId, useRef } from "react";

interface Props {
  runs: number;
  /** How many of them are at work, which ends them. */
  working: number;
  onClear: () => void;
  onClose: () => void;
}

export function ConfirmClear({ runs, working, onClear, onClose }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const title = useId();

  useEffect(() => {
    if (dialog.current?.open === false) dialog.current.showModal();
  }, []);

  return (
    <dialog
      ref={dialog}
      className="confirm"
      aria-labelledby={title}
      onClose={onClose}
      // Escape closes the question, not the run that is open beside it.
      onKeyDown={(event) => event.stopPropagation()}
    >
      <h2 id={title}>Clear the conversation?</h2>
      <p>
        Its messages{runs > 0 ? ` and ${count(runs)}` : ""} are removed for good.
        {working > 0 && ` What is still at work (${working}) is cancelled.`}
      </p>
      <div className="confirm-actions">
        <button
          type="button"
          className="button quiet"
          autoFocus
          onClick={() => dialog.current?.close()}
        >
          Keep it
        </button>
        <button
          type="button"
          className="button danger"
          onClick={() => {
            dialog.current?.close();
            onClear();
          }}
        >
          Clear everything
        </button>
      </div>
    </dialog>
  );
}

function count(runs: number): string {
  return runs === 1 ? "its run" : `its ${runs} runs`;
}
