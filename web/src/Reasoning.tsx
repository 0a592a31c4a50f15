// What an agent thought before it answered: closed until the reader opens it.
interface Props {
  text: string;
  active: boolean;
}

export function Reasoning({ text, active }: Props) {
  if (text === "") return null;
  return (
    <details className="reasoning">
      <summary>{active ? "Reasoning…" : "Reasoning"}</summary>
      <p>{text}</p>
    </details>
  );
}
