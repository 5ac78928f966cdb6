// Package trial chooses between ways to run a container by what was measured of each, in turns.
//
// # Problem
//
// A forecast is right for the services on which its rules were made. Of others it was right in half of the cases, while one round of
// six seconds of each remedy, really applied, named one that was within a tenth of the best in 29 of 31 draws.
//
// # Rule
//
//  1. A [Trial] has variants; the first is to leave the container as it is. Each round takes every variant that is still in it once, in
//     another order, so that what changes by itself meets all of them ([Trial.Order]).
//  2. What is clearly worse is not tried again: by half longer than the best, and by half a millisecond ([Trial.Add]). What harmed
//     at once is not either. Leaving it stays, since all others are compared with it.
//  3. Judged is the promised quantile of all rounds together. A variant that makes another kind of requests half as long again, lifts the
//     median by more than the tail's gain is worth, or harms a neighbour cannot win.
//  4. The lowest wins. Those within a tenth of it, or half a millisecond, are equal to it: of these the smaller intervention, then the
//     one whose rounds differ less ([Trial.Leader]). So what gains less than a tenth is left.
//  5. It ends when the leader is ahead of all others beyond the noise, or equal to them ([Trial.Settled]), after two rounds at least; or
//     when the time is up. A remedy that is then not ahead of leaving it is not chosen ([Trial.Choice]).
//
// Beyond the noise is what package verdict says of two sides, by blocks of requests that wait for each other; or that each round of one
// is below each round of the other.
//
// # Worked example
//
// Cassandra, a limit of 0.6 CPUs, reads beside compaction. Forecast: narrow 71 ms, leave it 76. Measured in two rounds of 6 s: leave it
// 65 and 61 ms, narrow 13 and 15, burst 58 and 66. Narrow is ahead of both in each round: it wins after two rounds.
//
// # Limits
//
// Requests are compared, and not the work that they ask for: where a client sends other work in one turn than in the next, more rounds are
// the only help. Two variants that interact with what one of them left behind (a cache that it warmed) cannot be told apart.
package trial
