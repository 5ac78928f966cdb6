package explain

import (
	"errors"
	"io"

	"github.com/unthrottle/unthrottle/diagnose"
	"github.com/unthrottle/unthrottle/recording"
)

// ErrEmpty is a recording that was cut off before its first events.
var ErrEmpty = errors.New("it was cut off before its first events: there is nothing to explain")

// Recording explains a kept recording: all that Live says of it, but for what only the living processes tell.
func Recording(r io.Reader) (diagnose.Explanation, error) {
	in, err := recording.NewReader(r)
	if err != nil {
		return diagnose.Explanation{}, err
	}
	a := newAnalysis()
	a.begin(&in.Header, nil, nil)
	var event recording.Event
	for {
		err := in.Next(&event)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return diagnose.Explanation{}, err
		}
		a.add(&event)
	}
	if in.Truncated() && in.Footer().EndNS <= 0 {
		return diagnose.Explanation{}, ErrEmpty
	}
	e := a.end(in.Footer())
	if in.Truncated() {
		e.NotMeasured = append(e.NotMeasured, "the end: the recording was cut off, and what only its end tells is missing")
	}
	return e, nil
}

// keeper writes the recording. Its first failure ends the keeping, not the recording.
type keeper struct {
	w   *recording.Writer
	err error
}

func (k *keeper) begin(w io.Writer, h *recording.Header) { k.w, k.err = recording.NewWriter(w, *h) }

func (k *keeper) add(e *recording.Event) {
	if k.w != nil && k.err == nil {
		k.err = k.w.Write(e)
	}
}

func (k *keeper) end(f recording.Footer) {
	if k.w != nil && k.err == nil {
		k.err = k.w.Close(f)
	}
}
