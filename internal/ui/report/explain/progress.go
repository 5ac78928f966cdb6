package explain

import (
	"fmt"
	"io"
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/progress"
)

// RecordingProgress draws how far a recording is, over the same line of a terminal again and again.
func RecordingProgress(w io.Writer, name string, done, length time.Duration) {
	// A progress line that cannot be written is no failure.
	fmt.Fprintf(w, "\r%s %3.0f s  recording %s; Ctrl-C explains what there is\x1b[K",
		progress.Bar(done, length, true), progress.Left(done, length), text.Sanitize(name, 40))
}
