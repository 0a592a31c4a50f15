// A condition that has held for a moment, so that what depends on it does not flicker.
import { useEffect, useState } from "react";

const MOMENT_MS = 1500;

export function useSettled(condition: boolean): boolean {
  const [settled, setSettled] = useState(false);
  useEffect(() => {
    if (!condition) {
      setSettled(false);
      return;
    }
    const timer = setTimeout(() => setSettled(true), MOMENT_MS);
    return () => clearTimeout(timer);
  }, [condition]);
  return settled && condition;
}
