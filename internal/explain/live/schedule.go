package live

import (
	"errors"
	"io"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// Schedule reads a recording and tells what its threads did, one spell after the other: begin gets the header, and returns who listens.
// Of a recording that was cut off or is damaged it tells up to there, and says so by an error that wraps [recording.ErrDamaged] or by
// cut.
func Schedule(r io.Reader, begin func(recording.Header) diagnose.Options) (cut bool, err error) {
	in, err := recording.NewReader(r)
	if err != nil {
		return false, err
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
	if !errors.Is(err, io.EOF) {
		a.Finish(recording.Footer{EndNS: last})
		return false, err
	}
	a.Finish(in.Footer())
	return in.Truncated(), nil
}
