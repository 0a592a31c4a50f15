// What the server says of itself: the model that answers, the folder, and what can be run in it.
import { useEffect, useState } from "react";
import { z } from "zod";

const Info = z.object({
  model: z.string(),
  offline: z.boolean(),
  folder: z.string().nullish(),
  tasks: z.array(z.object({ name: z.string(), title: z.string() })).default([]),
});
export type Info = z.infer<typeof Info>;

let asked: Promise<Info> | null = null;

function ask(): Promise<Info> {
  asked ??= fetch("/demo/info")
    .then((response) => response.json())
    .then((value: unknown) => Info.parse(value))
    .catch((error: unknown) => {
      asked = null;
      throw error;
    });
  return asked;
}

/** Null until it is known; an error when the server did not say. */
export function useInfo(): Info | Error | null {
  const [info, setInfo] = useState<Info | Error | null>(null);
  useEffect(() => {
    let gone = false;
    ask().then(
      (value) => gone || setInfo(value),
      (error: unknown) => gone || setInfo(error instanceof Error ? error : new Error()),
    );
    return () => {
      gone = true;
    };
  }, []);
  return info;
}
