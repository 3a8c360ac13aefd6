// What is under the pointer, beside it and within the frame; hidden where there is nothing to say.

function showTooltip(tooltip, text, { clientX, clientY }) {
  tooltip.hidden = !text;
  if (!text) return;
  tooltip.textContent = text;
  const frame = tooltip.parentElement.getBoundingClientRect();
  const room = frame.width - tooltip.offsetWidth - 4;
  tooltip.style.left = `${Math.max(0, Math.min(clientX - frame.left + 14, room))}px`;
  tooltip.style.top = `${clientY - frame.top + 18}px`;
}
