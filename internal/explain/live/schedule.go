package live

import (
	"errors"
	"io"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// Schedule reads a recording and tells what its threads did, one spell after the other: begin gets the header, and returns who listens.
// end is how long it is, from its beginning. Of one that was cut off it tells up to there; of one that is damaged too, with an error that
// wraps [recording.ErrDamaged].
func Schedule(r io.Reader, begin func(recording.Header) diagnose.Options) (end time.Duration, err error) {
	in, err := recording.NewReader(r)
	if err != nil {
		return 0, err
	}
	a := diagnose.New(in.Header, begin(in.Header))
	var event recording.Event
	var last int64
	for {
		if err = in.Next(&event); err != nil {
			break
		}
		a.Add(&event)
		last = max(last, event.AtNS)
	}
	footer := in.Footer()
	if errors.Is(err, io.EOF) {
		err = nil
	} else {
		footer = recording.Footer{EndNS: last}
	}
	a.Finish(footer)
	return time.Duration(footer.EndNS), err
}
