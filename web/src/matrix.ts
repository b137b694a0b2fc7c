// Pictures of matrices: one pixel a cell, enlarged without smoothing.
import { Rgb } from "./colour";
import { context } from "./dom";

// colour(row, column), or null for a cell that stays clear.
export function matrixImage(
  rows: number,
  columns: number,
  colour: (row: number, column: number) => Rgb | null,
): HTMLCanvasElement {
  const image = new ImageData(columns, rows);
  for (let i = 0; i < rows; ++i)
    for (let j = 0; j < columns; ++j) {
      const c = colour(i, j);
      if (c === null) continue;
      const at = 4 * (i * columns + j);
      image.data[at] = c[0];
      image.data[at + 1] = c[1];
      image.data[at + 2] = c[2];
      image.data[at + 3] = 255;
    }
  return imageCanvas(image);
}

export function imageCanvas(image: ImageData): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = image.width;
  canvas.height = image.height;
  context(canvas).putImageData(image, 0, 0);
  return canvas;
}

// Draws a picture over the whole of `canvas`. Fewer screen pixels than cells: smoothed, so that no
// cell is lost.
export function fill(canvas: HTMLCanvasElement, picture: HTMLCanvasElement): void {
  const ctx = context(canvas);
  ctx.imageSmoothingEnabled = picture.width > canvas.width;
  ctx.imageSmoothingQuality = "high";
  ctx.clearRect(0, 0, canvas.width, canvas.height);
  ctx.drawImage(picture, 0, 0, canvas.width, canvas.height);
}
