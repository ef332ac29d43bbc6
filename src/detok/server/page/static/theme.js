// Loaded before anything is drawn, so that a page in the reader's colours never flashes in others.
try {
  const theme = localStorage.getItem("detok-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // A browser that keeps nothing shows its own preference.
}
