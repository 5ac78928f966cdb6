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
// damaged, Recording explains the part before that, and says so in NotMeasured. It reads r twice if threads of
// one name have several roles. The errors are those of [recording.NewReader], ErrEmpty, and a failure to read r.
func Recording(r io.ReadSeeker) (diagnose.Explanation, error) { return reading(r, facts{}) }

// reading explains a recording with what is known beyond it. Without roles it finds them first.
func reading(r io.ReadSeeker, known facts) (diagnose.Explanation, error) {
	in, err := recording.NewReader(r)
	if err != nil {
		return diagnose.Explanation{}, err
	}
	a := newAnalysis(&in.Header, known)
	last, err := each(in, a.add)
	damaged := errors.Is(err, recording.ErrDamaged)
	switch {
	case !damaged && !errors.Is(err, io.EOF):
		return diagnose.Explanation{}, err
	case damaged && last <= 0:
		return diagnose.Explanation{}, err
	case in.Truncated() && in.Footer().EndNS <= 0:
		return diagnose.Explanation{}, errEmpty
	}
	footer := in.Footer()
	if damaged {
		footer = recording.Footer{EndNS: last}
	}
	if a.scan != nil {
		if with, ok := a.again(footer); ok {
			if _, err := r.Seek(0, io.SeekStart); err != nil {
				return diagnose.Explanation{}, fmt.Errorf("a second reading, for the threads' roles: %w", err)
			}
			return reading(r, with)
		}
	}
	e := a.end(footer)
	switch {
	case damaged:
		e.NotMeasured = append(e.NotMeasured, fmt.Sprintf("the rest: the recording is damaged after %v, and what "+
			"comes later is missing (%v)",
			time.Duration(last).Round(time.Millisecond), err))
	case in.Truncated():
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
