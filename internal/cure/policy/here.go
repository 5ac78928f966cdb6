package policy

import (
	"errors"
	"fmt"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

// Here decides which rows of a forecast can be put in force on this host, for one container. explain, forecast, fix and the
// agent all ask it.
//
// Worked example: the kernel is 5.10, which has no burst, and a limit of 3 CPUs is to be pinned on a host of 4 whose other
// containers use 2. Then the rows "burst" and "pin to 3 CPUs" are refused with these reasons, and "narrow" is not.
type Here struct {
	// Facts are the host's, as they are now.
	Facts  hoststate.Facts
	Target container.Container
	// Settings are those that every row is asked for with. Observed of them is what was seen of the container.
	Settings remedy.Request
}

// planned is a row as this host would do it.
type planned struct {
	request remedy.Request
	plan    *remedy.Plan
}

// Refused says of rows, by index, why this host cannot do them. The error says why that cannot be told.
func (h Here) Refused(f *forecast.Forecast) (map[int]string, error) {
	_, refused, err := h.plans(f)
	return refused, err
}

// plans has a plan of each row that this host can do, by index, and of each that it cannot the reason.
func (h Here) plans(f *forecast.Forecast) (map[int]planned, map[int]string, error) {
	plans, refused := map[int]planned{}, map[int]string{}
	for i := range f.Rows {
		row := &f.Rows[i]
		if row.HostLoad != 0 || row.Refused != "" || row.Remedy.Name == forecast.None || row.Remedy.OfService() {
			continue
		}
		request, why := remedy.RequestOf(row.Remedy, h.Settings)
		if why == "" {
			plan, err := remedy.Make(h.Facts, h.Target, request)
			no := new(remedy.Refused)
			switch {
			case errors.As(err, &no):
				why = no.Reason()
			case err != nil:
				return nil, nil, err
			default:
				plans[i] = planned{request, &plan}
			}
		}
		if why != "" {
			refused[i] = why
		}
	}
	return plans, refused, nil
}

// Cap is a cap of the sibling that spends a quota which the container shares with it. No forecast has it, and a trial tells. nil: there is
// none, or this host cannot do it.
func (h Here) Cap() (*Candidate, error) {
	request := h.Settings
	request.Kind = remedy.Cap
	plan, err := remedy.Make(h.Facts, h.Target, request)
	if errors.As(err, new(*remedy.Refused)) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &Candidate{Row: -1, Name: fmt.Sprintf("cap %s at %s", cgroup.Base(plan.Sibling), plan.Shown()["to"]),
		Change: changeOfAnother, Request: request, Plan: &plan, family: forecast.Remedy{Name: string(remedy.Cap)}}, nil
}
