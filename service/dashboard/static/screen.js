// The page that shows a run's screen.
import { Viewer, onEvent } from "/static/viewer.js";

const viewer = new Viewer(document.getElementById("screen"), null);
onEvent((event) => {
  if (event.type === "run.phase" && ["collecting", "grading", "done"].includes(event.payload.phase)) viewer.stop("the run is over");
});
