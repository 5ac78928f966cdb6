package live

import (
	"errors"
	"io"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// Schedule reads a recording and tells of its stops and of how many threads ran: begin gets the header, and returns who listens.
// end is how long it is, from its beginning. Of one that was cut off it tells up to there; of one that is damaged too, with an error that
// wraps [recording.ErrDamaged].
func Schedule(r io.Reader, begin func(recording.Header) diagnose.Options) (end time.Duration, err error) {
	in, err := recording.NewReader(r)
	if err != nil {
		return 0, err
	}
	a := diagnose.New(in.Header, begin(in.Header))
	last, err := each(in, a.Add)
	footer := in.Footer()
	if errors.Is(err, io.EOF) {
		err = nil
	} else {
		footer = recording.Footer{EndNS: last}
	}
	a.Finish(footer)
	return time.Duration(footer.EndNS), err
}

// each hands on every event that can be read. err is why there are no more: io.EOF, or what is wrong; last is the time of the latest event.
func each(in *recording.Reader, take func(*recording.Event)) (last int64, err error) {
	var event recording.Event
	for {
		if err = in.Next(&event); err != nil {
			return last, err
		}
		take(&event)
		last = max(last, event.AtNS)
	}
}
