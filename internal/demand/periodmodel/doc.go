// Package periodmodel tells what other limits would have done to a container, from its periods.
//
// # Problem
//
// Whether a quota stops a container depends on the order of what it wants. A histogram has lost the order; all periods
// of 200,000 containers are too much to keep. What can be kept of five minutes, in some hundred bytes, so that other
// limits can be judged later?
//
// # Rule
//
// Not the demand is kept, but what it meets. While the periods come, a [Model] steps each of some [CPUs] of candidate
// limits, four per doubling, through internal/sim/simulate/coarse, with and without a burst of one quota. A [Candidate]
// has what became of it: stopped time, throttled periods, the 99th percentile of the extra delay. So the order counts
// as it was, over as many periods as a backlog lasts. Pairs of neighbouring periods, or lengths of runs, would count it
// for one limit only, or for two periods. Candidates of many rows add up, in plain SQL, and a report steps nothing.
//
// The demand that is stepped is uncensored. A quota delays work and takes none away. So the work that ran in a stretch
// of throttled periods, up to the first one at whose end no thread was held back, is what came in that stretch. When it
// came is read off the stops: in a period whose quota was spent as fast as its threads could, all that ran had waited
// since the period before. What ran in the last period of a stretch had waited but for as much as runs, on average, in the
// period after stretches. Of stretches longer than [LongestStretch] it is not known what came when, and none of their
// time counts (Outcome.Known).
//
// A [Curve] is the candidates of one container, added up. [Curve.Least] is the least limit at which it is stopped for
// no larger share of its time to work, and no work is delayed longer, than [Curve.At] says of the present limit. Both
// sides are the model's, so that what it is off by in both drops out.
//
// # Worked example
//
// 150 ms of CPU time, 4 wide, in one of ten periods of 100 ms, else nothing: a limit of 1.5 CPUs never stops it. One of
// 1 is spent 27 ms after the work begins (a CPU notices that at its tick, on average 2 ms late), and the rest is done
// in the next period. The stop takes 42 ms if all came at once, and 28 ms if it came evenly: 35 ms are counted. With a
// burst of one quota there are 200 ms, and no stop.
//
// # Longer periods
//
// A longer period is stepped as the periods of which it consists: its quota comes with the first of them, and what that leaves is for
// the others. With a burst of one quota of it, a container may have twice as much at once as its limit is in the longer period. Work that
// finds nothing left waits for the end of the longer period. Of the example a limit of 0.2 CPUs in a period of 1 s has 400 ms for
// the first 150 ms, and 200 ms more each second: no stop. In periods of 100 ms it would need 0.75 CPUs with a burst.
//
// A longer period is no remedy where the limit is wanted for seconds, so that the price must not be too low there. A
// stretch that is longer than [LongestStretch] leaves the longer periods out of the whole outcome.
//
// # Limits
//
// A limit between two candidates is interpolated. Where in a period work begins is not known: a stop is taken to be as
// long as midway between work that comes at once and work that comes evenly. Work that waits for longer than one period
// is taken to have waited for one, so that what a container that is stopped often would want is on the small side.
// Delay is first come, first served, of CPU time and not of requests. Narrow and shorter periods are not judged: they
// change what happens within a period. docs/results/fleet.md has the error against internal/sim/simulate.
package periodmodel
