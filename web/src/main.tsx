// Starts the page.
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { App } from "./App";
import { ErrorBoundary } from "./ErrorBoundary";
import "./styles/tokens.css";
import "./styles/layout.css";
import "./styles/chat.css";
import "./styles/runs.css";
import "./styles/background.css";

const container = document.getElementById("root");
if (container === null) throw new Error("The page has no #root element.");

createRoot(container).render(
  <StrictMode>
    <ErrorBoundary>
      <App />
    </ErrorBoundary>
  </StrictMode>,
);
