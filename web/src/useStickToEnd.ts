// Keeps a scrolled area at its end while it grows, until the reader moves up in it.
//
// A finished thing that is shown for the first time (`live` false) starts at its beginning.
import { type RefCallback, useCallback, useEffect, useRef, useState } from "react";

const NEAR = 80;

export interface StickToEnd {
  ref: RefCallback<HTMLDivElement>;
  atEnd: boolean;
  onScroll: () => void;
  toEnd: () => void;
}

/** Where the area stood when it was last looked at: its position and the furthest it could have. */
interface Place {
  top: number;
  end: number;
}

function placeOf(area: HTMLElement): Place {
  return { top: area.scrollTop, end: area.scrollHeight - area.clientHeight };
}

/**
 * Whether to follow the end from now on. Only a move says so: growth alone leaves the position
 * as it was, and an area that became shorter moves up by itself.
 */
function follows(following: boolean, before: Place, now: Place): boolean {
  const left = now.end - now.top;
  if (left <= 1) return true;
  if (now.top < before.top - 1 && now.end >= before.end) return false;
  return following || (now.top > before.top && left < NEAR);
}

export function useStickToEnd(live: boolean): StickToEnd {
  const area = useRef<HTMLDivElement | null>(null);
  const place = useRef<Place>({ top: 0, end: 0 });
  const following = useRef(true);
  const isLive = useRef(live);
  const [atEnd, setAtEnd] = useState(true);

  useEffect(() => {
    isLive.current = live;
  }, [live]);

  const look = useCallback((element: HTMLElement): void => {
    const now = placeOf(element);
    following.current = follows(following.current, place.current, now);
    place.current = now;
    // The browser's own anchoring moves an area that is not being followed only.
    element.style.overflowAnchor = following.current ? "none" : "auto";
    setAtEnd(following.current || now.end - now.top < NEAR);
  }, []);

  const pin = useCallback((element: HTMLElement): void => {
    element.scrollTop = element.scrollHeight;
    place.current = placeOf(element);
  }, []);

  const onScroll = useCallback(() => {
    if (area.current !== null) look(area.current);
  }, [look]);

  const toEnd = useCallback(() => {
    following.current = true;
    setAtEnd(true);
    if (area.current !== null) pin(area.current);
  }, [pin]);

  const ref = useCallback(
    (element: HTMLDivElement) => {
      area.current = element;
      const keep = (): void => {
        look(element);
        if (isLive.current && following.current) pin(element);
      };
      const sizes = new ResizeObserver(keep);
      const watch = (): void => {
        for (const part of [element, ...element.children]) sizes.observe(part);
      };
      const parts = new MutationObserver(watch);
      place.current = placeOf(element);
      parts.observe(element, { childList: true });
      watch();
      return () => {
        area.current = null;
        sizes.disconnect();
        parts.disconnect();
      };
    },
    [look, pin],
  );

  return { ref, atEnd, onScroll, toEnd };
}
