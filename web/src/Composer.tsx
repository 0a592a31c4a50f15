// Where the user writes. Enter sends, Shift+Enter makes a new line.
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";

interface Props {
  busy: boolean;
  disabled: boolean;
  placeholder: string;
  onSend: (text: string) => void;
  onCancel: () => void;
  onClear: (() => void) | null;
}

const TALLEST = 200;

export function Composer({ busy, disabled, placeholder, onSend, onCancel, onClear }: Props) {
  const [text, setText] = useState("");
  const field = useRef<HTMLTextAreaElement>(null);
  const hint = useId();
  const sendable = text.trim() !== "" && !busy && !disabled;

  useEffect(() => {
    const area = field.current;
    if (area === null) return;
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight, TALLEST)}px`;
  }, [text]);

  const send = (): void => {
    if (!sendable) return;
    onSend(text.trim());
    setText("");
    field.current?.focus();
  };

  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    send();
  };

  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <div className="composer-box">
        <textarea
          ref={field}
          rows={1}
          value={text}
          disabled={disabled}
          placeholder={placeholder}
          aria-label="Message"
          aria-describedby={hint}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={onKeyDown}
        />
        {busy ? (
          <button type="button" className="button danger" onClick={onCancel}>
            Cancel
          </button>
        ) : (
          <button type="submit" className="button primary" disabled={!sendable}>
            Send
          </button>
        )}
      </div>
      <div className="composer-foot">
        <p className="hint" id={hint}>
          <kbd>Enter</kbd> sends, <kbd>Shift</kbd>+<kbd>Enter</kbd> makes a new line
        </p>
        {onClear && (
          <button type="button" className="link-button" onClick={onClear}>
            Clear the conversation
          </button>
        )}
      </div>
    </form>
  );
}
