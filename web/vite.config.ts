// Builds the demo page into the Python package, which serves it.
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  plugins: [react()],
  build: {
    outDir: "../src/ramet/demo/page",
    emptyOutDir: true,
    chunkSizeWarningLimit: 1500,
    rollupOptions: {
      // Comments in libraries that Rollup cannot read concern nobody here.
      onwarn: (warning, warn) => {
        if (warning.code !== "INVALID_ANNOTATION") warn(warning);
      },
    },
  },
  server: {
    proxy: {
      "/agents": { target: "http://127.0.0.1:8765", ws: true },
      "/demo": { target: "http://127.0.0.1:8765" },
    },
  },
});
