package policy

import (
	"fmt"

	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// Resize judges the advice to make a pool narrower by the forecast's row of that pool. forecasts is what the row says;
// ok: the row supports the advice. A row that does not, or no row, means that the advice may do harm.
func Resize(f *forecast.Forecast, pool string) (forecasts string, ok bool) {
	c := &choice{f: f}
	c.decide()
	if c.none == nil || c.none.Judged == nil || c.out.Answer == AnswerUnknown || c.out.Answer == AnswerLeave {
		return "", false
	}
	for i := range f.Rows {
		r := &f.Rows[i]
		if r.Remedy.Name != forecast.Pools || r.Remedy.Pool < 0 || f.Rows[i].HostLoad != 0 || r.Refused != "" ||
			r.Remedy.Pool >= len(c.none.Figures.Pools) || c.none.Figures.Pools[r.Remedy.Pool].Name != pool {
			continue
		}
		return fmt.Sprintf("forecast of %s: %s", c.name(i), c.latencies(i)), c.settingHelps(r)
	}
	return "", false
}

// settingHelps tells whether a resized pool is worth its change: the judged latency falls, and the ordinary response of
// all pools does not grow for it.
func (c *choice) settingHelps(r *forecast.Row) bool {
	was, is := c.none.Figures.Response.P50, r.Figures.Response.P50
	return c.helps(r.Judged) && (was == nil || is == nil || *is <= *was*(1+stats.LeastGain) || *is-*was < stats.LeastGainMs)
}
