// Builds the page that puts the published hooks under test.
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  root: "page",
  base: "./",
  plugins: [react()],
  build: {
    outDir: "../dist",
    emptyOutDir: true,
    chunkSizeWarningLimit: 1500,
    minify: false,
    rollupOptions: {
      onwarn: (warning, warn) => {
        if (warning.code !== "INVALID_ANNOTATION") warn(warning);
      },
    },
  },
});
