// The top of the page: whose assistant this is, which model answers, and the connection.
import { ConnectionPill } from "./ConnectionPill";
import type { ConnectionState } from "./connection";
import { ModelLine } from "./ModelLine";

interface Props {
  user: string;
  connection: ConnectionState;
}

export function Header({ user, connection }: Props) {
  return (
    <header className="header">
      <img className="mark" src="./icon.svg" alt="" width="28" height="28" />
      <div className="header-text">
        <h1>
          ramet <span className="header-user">· assistant of {user}</span>
        </h1>
        <ModelLine />
      </div>
      <ConnectionPill state={connection} />
    </header>
  );
}
