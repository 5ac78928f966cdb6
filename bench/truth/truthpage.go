package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/unthrottle/unthrottle/bench/study"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/internal/text"
)

// scored is a case with its score.
type scored struct {
	c testCase
	k caseRun
	s score
}

// scoredOf are the cases that the tool looked at, and a line for each of the others.
func scoredOf(of []testCase, all []caseRun) (done []scored, open []string) {
	for i, c := range of {
		switch k := all[i]; {
		case k.Look == nil && k.NotRun != "":
			open = append(open, fmt.Sprintf("- `%s`: not run: %s", c.name, text.Shown(k.NotRun)))
		case k.Look == nil:
			open = append(open, fmt.Sprintf("- `%s`: not measured yet", c.name))
		default:
			done = append(done, scored{c, k, scoreOf(c, k)})
		}
	}
	return done, open
}

// truthMarkdown is docs/results/truth.md: how right explain and forecast are on real services.
func truthMarkdown(of []testCase, all []caseRun) string {
	var p page
	done, open := scoredOf(of, all)
	p.Line(`# Are explain and forecast right on real services?

Each case is a real program in a cgroup with a limit, set up so that the truth is known: the cause, who spends the quota, and who waits. explain and forecast
see a recording of 6 seconds. Then each remedy is applied for real, and a client outside measures.`)
	t := tallyOf(done)
	p.tally(t)
	p.wrong(done)
	if len(open) > 0 {
		p.Line("\n## Not measured\n\n%s", strings.Join(open, "\n"))
	}
	p.Line("\nCauses and forecasts of every service stand with those of [fix](fix.md).")
	return p.String()
}

// tally is the sum of all scores.
type tally struct {
	sick, right, causes, suffers, judges int
	healthy, alarms                      int
	alertSick, alertHealthy              int
	effects, signs                       int
	followed, harmed                     int      // advice that was followed for real, and where that made the part that waits slower
	calm                                 []string // of recordings that caught a calm time, or another load than the rounds
	p99                                  fits
	longer, shorter                      fits // of the longer recordings, and of the others of the same services
}

// fits counts how well p99 itself was forecast. Parts of a whole each.
type fits struct {
	fair, near, within                int       // rows with enough requests
	widths                            []float64 // of the intervals of rows that can be judged: the end over the beginning
	mixed, noisy                      int       // of fair: cannot be judged
	leave, leaveNear                  int       // rows without a remedy that can be judged: no forecast, the recording against another time
	judged, judgedNear                int       // rows that can be judged
	judgedWithin, judgedTouched       int
	rounds, agree                     int // one round as the forecast of the others, in fair rows
	factors, factorsNear, ofLeaveNear int
}

func (f *fits) add(e *effect) {
	if !e.Fair {
		return
	}
	f.fair++
	f.near += count(e.Close)
	f.within += count(e.Within)
	f.rounds, f.agree = f.rounds+e.Rounds, f.agree+e.Agree
	f.mixed += count(e.Mixed)
	f.noisy += count(!e.Mixed && !e.Steady)
	if e.Variant != leaveIt {
		f.factors++
		f.factorsNear += count(e.FactorClose)
		f.ofLeaveNear += count(e.OfLeaveClose)
	}
	if !e.comparable() {
		return
	}
	f.judged++
	f.judgedNear += count(e.Close)
	f.judgedWithin += count(e.Within)
	f.judgedTouched += count(e.Touched)
	if e.Low > 0 {
		f.widths = append(f.widths, e.High/e.Low)
	}
	if e.Variant == leaveIt {
		f.leave++
		f.leaveNear += count(e.Close)
	}
}

func tallyOf(all []scored) (t tally) {
	for _, j := range all {
		if j.c.healthy {
			t.healthy++
			t.alarms += count(j.s.FalseAlarm)
			t.alertHealthy += count(j.s.Alert)
			continue
		}
		t.sick++
		if line := j.calm(); line != "" {
			t.calm = append(t.calm, line)
		}
		if line := j.otherLoad(); line != "" {
			t.calm = append(t.calm, line)
		}
		t.causes += count(j.s.Cause)
		t.right += count(j.s.Guilty)
		t.suffers += count(j.s.Suffers)
		t.judges += count(j.s.Judges)
		t.alertSick += count(j.s.Alert)
		if f := followedOf(j.c, j.k); f != nil {
			t.followed++
			t.harmed += count(f.harmed)
		}
		for _, e := range j.s.Effects {
			t.effects += count(e.Real)
			t.signs += count(e.Real && e.Sign)
			t.p99.add(&e)
			if len(j.s.Longer) > 0 {
				t.shorter.add(&e)
			}
		}
		for _, e := range j.s.Longer {
			t.longer.add(&e)
		}
	}
	return t
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// tally is what a reader asks first.
func (p *page) tally(t tally) {
	of := t.p99
	p.Line("\n## In short\n")
	table := p.Table("what", "reached", "aim")
	table.Rowf("cause and guilty part right, healthy services included | %d of %d | 9 of 10", t.right+t.healthy-t.alarms, t.sick+t.healthy)
	table.Rowf("the same, where something is wrong | %d of %d", t.right, t.sick)
	table.Rowf("false alarms: a cause, advice or a remedy for a healthy service | %d of %d | 0", t.alarms, t.healthy)
	table.Rowf("sign of the effect on p99 right, effects beyond the noise | %s | 95 %%", share(t.signs, t.effects))
	table.Rowf("p99 within a quarter of the forecast | %s | 80 %%", share(of.near, of.fair))
	table.Rowf("one round within a quarter of the median of the others: what a forecast can reach | %s", share(of.agree, of.rounds))
	table.Rowf("the forecast's interval contains p99, rows that can be judged | %s | 80 %%", share(of.judgedWithin, of.judged))
	table.Rowf("the same, all rows | %s", share(of.within, of.fair))
	table.Rowf("advice followed for real: the part that waits is slower | %s | 0", share(t.harmed, t.followed))
	table.Rowf("alert of the kubernetes-mixin (a quarter of the periods throttled) fires where something is wrong | %d of %d", t.alertSick, t.sick)
	table.Rowf("the same alert for healthy services | %d of %d", t.alertHealthy, t.healthy)
	p.Line("\nRounds differ by what comes by chance, and so does the recording: 6 seconds hold about 15 bursts, and p99 is that of the worst. Where the rounds of a row differ by\nmore than a quarter, no forecast is right for all of them, and the row cannot be judged.")
}

// tallyDetails are the other sums.
func (p *page) tallyDetails(t tally) {
	of := t.p99
	p.Line("\n## Sums\n")
	table := p.Table("what", "reached")
	table.Rowf("cause right, where something is wrong | %d of %d", t.causes, t.sick)
	table.Rowf("the part that waits is named right | %d of %d", t.suffers, t.sick)
	table.Rowf("forecast judges the part that waits | %d of %d", t.judges, t.sick)
	table.Rowf("p99 within a quarter of the forecast, rows that can be judged | %s", share(of.judgedNear, of.judged))
	if t.longer.judged > 0 {
		table.Rowf("p99 within a quarter, of services recorded twice: from %.0f s, and from %.0f s | %s, %s", lookFor.Seconds(), longerLook.Seconds(),
			share(t.shorter.judgedNear, t.shorter.judged), share(t.longer.judgedNear, t.longer.judged))
		table.Rowf("their intervals contain p99 | %s, %s", share(t.shorter.judgedWithin, t.shorter.judged), share(t.longer.judgedWithin, t.longer.judged))
	}
	table.Rowf("leaving it: the recording within a quarter of another time | %s", share(of.leaveNear, of.leave))
	table.Rowf("rows that cannot be judged: the rounds differ by more than a quarter | %d of %d", of.noisy, of.fair)
	table.Rowf("rows that cannot be judged: the client's p99 is of one of two kinds of requests | %d of %d", of.mixed, of.fair)
	table.Rowf("the interval overlaps the spread of the rounds, rows that can be judged | %s", share(of.judgedTouched, of.judged))
	table.Rowf("the end of an interval over its beginning, the median of rows that can be judged | %s", medianFactor(of.widths))
	table.Rowf("p99 as a factor of leaving it in the same round within a quarter of the forecast one | %s", share(of.factorsNear, of.factors))
	table.Rowf("p99 within a quarter of the forecast factor times what leaving it came to | %s", share(of.ofLeaveNear, of.factors))
	for _, line := range t.calm {
		p.Line("- %s", line)
	}
}

// calm says where the recording caught a calmer time than the rounds that left the service alone; "": it did not.
func (j *scored) calm() string {
	l, low, high := j.k.Look, math.Inf(1), 0.0
	for _, r := range j.k.runsOf(leaveIt) {
		if r.Periods > 0 {
			share := float64(r.Throttled) / float64(r.Periods)
			low, high = min(low, share), max(high, share)
		}
	}
	if l.Periods == 0 || math.IsInf(low, 1) {
		return ""
	}
	share := float64(l.Throttled) / float64(l.Periods)
	if share >= calmShare*low {
		return ""
	}
	return fmt.Sprintf("The recording of %s caught a calm time: %.0f %% of its periods were throttled, %.0f to %.0f %% in the rounds.", j.c.name, 100*share, 100*low, 100*high)
}

// calmShare is the share of the least throttling of any round below which a recording is calm.
const calmShare = 0.8

// otherLoad says where the recording has requests at another rate than the rounds that left the service alone, by more than
// a quarter of theirs; "": it does not, or that is not known. No replay of the recording is then a forecast of the rounds.
//
// Worked example: a recording of 6 s has 348 requests, 58 a second. The rounds of 4 s have 336, 336 and 372: 84 to 93 a
// second. The recording has 0.69 times as many as the median round.
func (j *scored) otherLoad() string {
	l := j.k.Look
	if l.Requests == nil || l.Window <= 0 || j.k.mixed() || j.k.Each <= 0 {
		return ""
	}
	var rates []float64
	for _, r := range j.k.runsOf(leaveIt) {
		if r.Requests > 0 {
			rates = append(rates, float64(r.Requests)/j.k.Each.Seconds())
		}
	}
	s, rate := study.SpreadOf(rates), float64(*l.Requests)/l.Window
	if s.Rounds == 0 || near(rate, s.Median) {
		return ""
	}
	line := fmt.Sprintf("The recording of %s has %s requests a second, the rounds have %s to %s: another load, of which a replay knows nothing.",
		j.c.name, short(rate), short(s.Low), short(s.High))
	row := rowOf(l.Rows, leaveIt)
	if row == nil || row.Requests == nil || l.RequestsP99 == nil || *l.RequestsP99 <= 0 {
		return line
	}
	return line + fmt.Sprintf(" Replayed as it was, its requests have a p99 of %s ms; recorded were %s ms.", short(*row.Requests), short(*l.RequestsP99))
}

// medianFactor shows the median of factors.
func medianFactor(all []float64) string {
	if len(all) == 0 {
		return "not measured"
	}
	return fmt.Sprintf("%.2f", stats.Median(all))
}

// share shows a part of a whole with its percentage.
func share(part, whole int) string {
	if whole == 0 {
		return "not measured"
	}
	return fmt.Sprintf("%d of %d (%.0f %%)", part, whole, 100*float64(part)/float64(whole))
}

// wrong lists every miss with its cause.
func (p *page) wrong(all []scored) {
	var lines []string
	for _, j := range all {
		var what []string
		switch {
		case j.c.healthy && j.s.FalseAlarm:
			what = append(what, fmt.Sprintf("nothing is wrong, and explain says %s, forecast %s", orMissing(j.k.Look.Cause), j.advised()))
		case !j.c.healthy && !j.s.Cause:
			what = append(what, fmt.Sprintf("cause is %s, said was %s", j.c.causes[0], orMissing(j.k.Look.Cause)))
		case !j.c.healthy && !j.s.Guilty:
			what = append(what, fmt.Sprintf("guilty is %s, said was %s", strings.Join(j.c.guilty, " or "), orMissing(shownNames(j.k.Look.Guilty))))
		}
		if !j.s.Suffers && j.s.Cause && !j.c.healthy {
			what = append(what, fmt.Sprintf("%s waits, said was %s", strings.Join(j.c.suffers, " or "), text.Shown(j.k.Look.Suffers)))
		}
		if !j.s.Judges {
			what = append(what, fmt.Sprintf("%s waits, forecast judges %s", strings.Join(j.c.suffers, " or "), text.Shown(j.k.Look.Judged)))
		}
		for _, e := range j.s.Effects {
			if e.Real && !e.Sign {
				what = append(what, fmt.Sprintf("%s: forecast %.2f of p99, came %.2f", e.Variant, e.Forecast, e.Came))
			}
		}
		if len(what) == 0 {
			continue
		}
		why := whyMissed[j.c.name]
		if why == "" {
			why = "the reason is not known."
		}
		lines = append(lines, fmt.Sprintf("- `%s`: %s. Why: %s", j.c.name, strings.Join(what, "; "), why))
	}
	if len(lines) > 0 {
		p.Line("\n## Misses\n\n%s", strings.Join(lines, "\n"))
	}
}

func (j scored) advised() string {
	if j.k.Look.Recommended != "" {
		return j.k.Look.Recommended
	}
	return orMissing(j.k.Look.Answer)
}

// shownNames shows names from a container in a line.
func shownNames(names []string) string { return text.Shown(strings.Join(names, ", ")) }

// whyMissed says why a case is missed, as found by looking into its recording.
var whyMissed = map[string]string{
	"fastapi-reports": "the recording of 6 s is of a calm time; that of 24 s says pool.",
	"sshd-make":       "sshd forks a child for each connection, and the child is what waits.",
	"dovecot-logins":  "the auth process is one thread, longer than a quota, and logins wait for it: a tiny limit and a pool as well.",
	"node-logins":     "few stops came in the recording, so that the p99 of the event loop hardly rose. That of the workers that hash did.",
	"haproxy-one-cpu": "no quota stops it, so a burst changes nothing; the rounds differ by chance.",
	"python-report":   "the forecast judges all requests, whose p99 is that of the exports; the client judges the short ones beside them.",
}
