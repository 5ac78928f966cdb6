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
//  2. What is clearly worse is not tried again: by half longer than the best, and by half a millisecond, beyond what turns differ by
//     themselves ([Trial.Add]). What harmed at once in two turns is not either. Leaving it stays, since all others are compared with it.
//  3. Judged is the promised quantile of each turn, as a logarithm. A turn is one sample, however many requests it has: a compaction that
//     meets a turn meets its requests together. Turns of all variants tell how far turns differ, and the work that came (requests, CPU
//     time, the busiest pools) is taken out where it explains latencies (fit).
//  4. A variant that makes another kind of requests half as long again, lifts the median by more than the tail's gain is worth, or harms a
//     neighbour in most of its turns cannot win, where that too is beyond chance.
//  5. The lowest wins. Those within a tenth of it, or half a millisecond, are equal to it. Of these, one that quotas still stop loses to
//     another setting of the same remedy that they stop less ([stats.StoppedLonger]). Then the smaller intervention wins, then the one
//     whose turns differ less.
//  6. It ends when the leader is better than all others beyond chance, or equal to them, after two rounds at least; or when the time is
//     up ([Trial.More]). Then it is better beyond chance and stays, or no remedy can gain a quarter, or the trial cannot tell
//     ([Trial.Choice]). How often that is wrong for drawn services: docs/results/trial.md.
//
// # Worked example
//
// Cassandra, a limit of 0.6 CPUs, reads beside compaction. Forecast: narrow 71 ms, leave it 76. Measured in two rounds of 6 s: leave it
// 65 and 61 ms, narrow 13 and 15, burst 58 and 66. Turns of one variant differ by 9 %, so that by Student's t of three degrees narrow is
// below leaving it by a factor of 3.1 at least, at a level of 1 in 100: it wins after two rounds.
//
// # Limits
//
// What turns show of the work is what was counted. Where a client sends other work that looks alike, more rounds are the only
// help. Two variants that interact with what one of them left behind (a cache that it warmed) cannot be told apart.
package trial
