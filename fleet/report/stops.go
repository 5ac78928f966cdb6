package report

import (
	"context"

	"github.com/unthrottle/unthrottle/fleet/engine"
)

// stopLength is how many periods had a stop of up to so many ms.
type stopLength struct {
	ms      float64
	periods int64
}

// stops are a service's, from the shortest length on.
type stops []stopLength

// stopsOf asks for all services' stops.
func stopsOf(ctx context.Context, e engine.Engine) (map[string]stops, error) {
	all := map[string]stops{}
	err := e.Ask(ctx, "stops", func(scan func(...any) error) error {
		var service string
		var us, periods int64
		if err := scan(&service, &us, &periods); err != nil {
			return err
		}
		all[service] = append(all[service], stopLength{float64(us) / 1000, periods})
		return nil
	})
	return all, err
}

// quantile is the length, in ms, that a part q of the stopped periods' stops do not exceed; nil: there was none, or that is not known.
func (s stops) quantile(q float64) *float64 {
	sum, all := int64(0), int64(0)
	for _, l := range s {
		all += l.periods
	}
	for _, l := range s {
		if sum += l.periods; float64(sum) >= q*float64(all) {
			return new(l.ms)
		}
	}
	return nil
}
