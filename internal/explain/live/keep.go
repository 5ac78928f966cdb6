package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/see/probe"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// errEmpty says that a recording was cut off before its first events.
var errEmpty = errors.New("the recording was cut off before its first events: there is nothing to explain")

// Recording explains a kept recording, without the facts of living processes. If it was cut off or is
// damaged, Recording explains the part before that, and says so in NotMeasured. The errors are those of
// [recording.NewReader], ErrEmpty, and a failure to read r.
func Recording(r io.Reader) (diagnose.Explanation, error) {
	in, err := recording.NewReader(r)
	if err != nil {
		return diagnose.Explanation{}, err
	}
	a := newAnalysis()
	a.begin(&in.Header, nil, nil)
	var event recording.Event
	var last int64
	for {
		if err = in.Next(&event); err != nil {
			break
		}
		a.add(&event)
		last = max(last, event.AtNS)
	}
	switch damaged := errors.Is(err, recording.ErrDamaged); {
	case !damaged && !errors.Is(err, io.EOF):
		return diagnose.Explanation{}, err
	case damaged && last <= 0:
		return diagnose.Explanation{}, err
	case damaged:
		e := a.end(recording.Footer{EndNS: last})
		e.NotMeasured = append(e.NotMeasured, fmt.Sprintf("the rest: the recording is damaged after %v, and what comes later is missing (%v)",
			time.Duration(last).Round(time.Millisecond), err))
		return e, nil
	case in.Truncated() && in.Footer().EndNS <= 0:
		return diagnose.Explanation{}, errEmpty
	}
	e := a.end(in.Footer())
	if in.Truncated() {
		e.NotMeasured = append(e.NotMeasured, "the end: the recording was cut off, and what only its end tells is missing")
	}
	return e, nil
}

// Keep records a container with a probe that is open already, into Options.Keep, and explains nothing: the recording
// can be explained later ([Recording]). That leaves out what costs most, the load of the probe and the diagnosis. The
// end of ctx, or of the target itself, ends the recording early. The errors are *Gone, and failures of the probe and
// of writing.
func Keep(ctx context.Context, p *probe.Probe, o Options) error {
	var k keeper
	footer, _, err := o.take(ctx, p, func() {}, func(h *recording.Header) { k.begin(o.Keep, h) }, k.add)
	if err != nil {
		return err
	}
	k.end(footer)
	return k.err
}

// keeper writes the recording. Its first failure ends the writing, but not the recording.
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
