// Keeps a scrolled area at its end while it grows, unless the reader has scrolled away.
//
// A finished thing that is shown for the first time (`live` false) starts at its beginning.
import { type RefObject, useCallback, useEffect, useRef, useState } from "react";

const NEAR = 80;

export interface StickToEnd {
  ref: RefObject<HTMLDivElement | null>;
  atEnd: boolean;
  onScroll: () => void;
  toEnd: () => void;
}

export function useStickToEnd(live: boolean, ...grows: readonly unknown[]): StickToEnd {
  const ref = useRef<HTMLDivElement | null>(null);
  const follow = useRef(true);
  const [atEnd, setAtEnd] = useState(true);

  const onScroll = useCallback(() => {
    const area = ref.current;
    if (area === null) return;
    follow.current = area.scrollHeight - area.scrollTop - area.clientHeight < NEAR;
    setAtEnd(follow.current);
  }, []);

  const toEnd = useCallback(() => {
    follow.current = true;
    setAtEnd(true);
    ref.current?.scrollTo({ top: ref.current.scrollHeight });
  }, []);

  useEffect(() => {
    if (live && follow.current) ref.current?.scrollTo({ top: ref.current.scrollHeight });
    // The caller names what makes the area grow.
  }, grows);

  return { ref, atEnd, onScroll, toEnd };
}
