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

// The same by single pixels, for a page that is about to be printed: Chromium loses what stands before
// a canvas onto which another was drawn meanwhile. The mean of the cells below a pixel.
export function fillForPrint(canvas: HTMLCanvasElement, picture: HTMLCanvasElement): void {
  const { width, height } = canvas;
  const cells = context(picture).getImageData(0, 0, picture.width, picture.height);
  const pixels = new ImageData(width, height);
  const range = (place: number, pixelCount: number, cellCount: number): [number, number] => {
    const begin = Math.floor((place * cellCount) / pixelCount);
    return [begin, Math.max(begin + 1, Math.floor(((place + 1) * cellCount) / pixelCount))];
  };
  for (let y = 0; y < height; ++y) {
    const [top, bottom] = range(y, height, picture.height);
    for (let x = 0; x < width; ++x) {
      const [left, right] = range(x, width, picture.width);
      for (let channel = 0; channel < 4; ++channel) {
        let sum = 0;
        for (let i = top; i < bottom; ++i)
          for (let j = left; j < right; ++j) sum += cells.data[4 * (i * picture.width + j) + channel]!;
        pixels.data[4 * (y * width + x) + channel] = sum / ((bottom - top) * (right - left));
      }
    }
  }
  context(canvas).putImageData(pixels, 0, 0);
}
