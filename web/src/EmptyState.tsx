// What a first visitor sees: what this is, and four questions to try.
interface Props {
  onAsk: (text: string) => void;
}

const EXAMPLES: readonly { kind: string; text: string }[] = [
  { kind: "Research", text: "How does the with statement manage context managers?" },
  { kind: "Research", text: "What happens when a generator raises an exception?" },
  { kind: "Compare", text: "Compare lists and tuples" },
  { kind: "Plan", text: "Plan how to add a command line option to this project" },
];

export function EmptyState({ onAsk }: Props) {
  return (
    <section className="empty" aria-labelledby="empty-title">
      <h2 id="empty-title">Ask, and watch the agents work</h2>
      <p>
        The assistant hands your question to other agents and streams what they do under its answer.
        Reload in the middle, or open an agent as a chat of its own: nothing is lost.
      </p>
      <ul className="examples">
        {EXAMPLES.map(({ kind, text }) => (
          <li key={text}>
            <button type="button" onClick={() => onAsk(text)}>
              <span className="example-kind">{kind}</span>
              {text}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
