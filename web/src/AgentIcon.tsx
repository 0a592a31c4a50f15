// A drawn sign for each kind of agent, so that the page needs no emoji font.
const PATHS: Record<string, string> = {
  Researcher: "M10.5 10.5 14 14M12 7A5 5 0 1 1 2 7a5 5 0 0 1 10 0Z",
  BuildRunner: "M3 4l4 4-4 4M8.5 12H13",
  Planner: "M6 4h8M6 8h8M6 12h8M2.5 4h.01M2.5 8h.01M2.5 12h.01",
};

const OTHER = "M8 2 14 8 8 14 2 8Z";

export function AgentIcon({ agentType }: { agentType: string }) {
  return (
    <svg className="agent-icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={PATHS[agentType] ?? OTHER} />
    </svg>
  );
}
