// What a first visitor sees: what this is, and questions to try.
import { useInfo } from "./info";

interface Props {
  onAsk: (text: string) => void;
}

interface Example {
  kind: string;
  text: string;
}

const EXAMPLES: readonly Example[] = [
  { kind: "Research", text: "How does the with statement manage context managers?" },
  { kind: "Compare", text: "Compare lists and tuples" },
  { kind: "Plan", text: "Plan how to add a command line option to this project" },
  {
    kind: "Background",
    text: "Research how generators handle exceptions, in the background",
  },
];

/** The example that runs something, where the server has something to run. */
const BUILDS: Readonly<Record<string, Example>> = {
  tests: { kind: "Build", text: "Run the unit tests in the background" },
  syntax: { kind: "Build", text: "Check the syntax of every file in the background" },
};

export function EmptyState({ onAsk }: Props) {
  const info = useInfo();
  const tasks = info === null || info instanceof Error ? [] : info.tasks;
  const builds = tasks.flatMap(({ name }) => BUILDS[name] ?? []);
  return (
    <section className="empty" aria-labelledby="empty-title">
      <h2 id="empty-title">Ask, and watch the agents work</h2>
      <p>
        The assistant hands your question to other agents and streams what they do under its answer.
        Reload in the middle, or open an agent as a chat of its own: nothing is lost. What you want
        “in the background” goes on while you talk of something else.
      </p>
      <ul className="examples">
        {[...EXAMPLES, ...builds].map(({ kind, text }) => (
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
