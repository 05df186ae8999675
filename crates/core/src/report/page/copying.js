// A button beside each command, which copies it.
"use strict";
for (const command of document.querySelectorAll("code.command")) {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "copy", textContent: "copy" });
  button.setAttribute("aria-label", `copy ${command.textContent}`);
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(command.textContent);
    button.textContent = "copied";
  });
  command.after(" ", button);
}
