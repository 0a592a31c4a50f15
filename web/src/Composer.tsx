// Where the user writes. Enter sends, Shift+Enter makes a new line.
import { type KeyboardEvent, type RefObject, useEffect, useId, useState } from "react";

interface Props {
  /** The message box, for whoever sends the focus there. */
  field: RefObject<HTMLTextAreaElement | null>;
  busy: boolean;
  disabled: boolean;
  placeholder: string;
  onSend: (text: string) => void;
  onCancel: () => void;
  onClear: (() => void) | null;
}

const TALLEST = 200;

export function Composer(props: Props) {
  const { field, busy, disabled, placeholder, onSend, onCancel, onClear } = props;
  const [text, setText] = useState("");
  const hint = useId();
  const sendable = text.trim() !== "" && !busy && !disabled;

  useEffect(() => {
    const area = field.current;
    if (area === null) return;
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight, TALLEST)}px`;
  }, [field, text]);

  useEffect(() => {
    // What is opened beside the conversation has the focus already.
    if (document.activeElement === document.body) field.current?.focus();
  }, [field]);

  const send = (): void => {
    if (!sendable) return;
    onSend(text.trim());
    setText("");
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
          {busy ? (
            "Wait or cancel before asking again"
          ) : (
            <>
              <kbd>Enter</kbd> sends, <kbd>Shift</kbd>+<kbd>Enter</kbd> makes a new line
            </>
          )}
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
