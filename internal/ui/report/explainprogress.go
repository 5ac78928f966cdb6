package report

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
)

// RecordingProgress draws how far a recording is, over the same line of a terminal again and again.
func RecordingProgress(w io.Writer, name string, done, length time.Duration) {
	share := 1.0
	if length > 0 {
		share = min(1, max(0, done.Seconds()/length.Seconds()))
	}
	left := math.Ceil(max(0, (length - done).Round(100*time.Millisecond).Seconds()))
	// A progress line that cannot be written is no failure.
	fmt.Fprintf(w, "\r%s %3.0f s  recording %s; Ctrl-C explains what there is\x1b[K",
		pad(bars{ascii: true}.bar(share, progressBar), progressBar), left, text.Sanitize(name, 40))
}
