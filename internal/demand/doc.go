// Package demand has what is known of one container in five minutes as a row, for questions over many hosts and days.
//
// # Problem
//
// Tools that size containers take percentiles of their use. A limit censors use: it never shows what a container wanted
// above it. Each host knows that exactly, and forgets it. A fleet has millions of container-hours, so that what is kept
// of each must be small.
//
// # Rule
//
// A [Rows] takes the observations of a host round by round, and makes a [Row] per container and slot of [SlotLength].
// Counters and histograms add up over the rounds. A slot is a stretch of UTC; a round belongs to the slot in which it
// began. What was not measured in any round of the slot is nil and never 0.
//
// Where the probe tells of each period ([Rows.AddPeriod]), a row also has what other limits would have done: package
// periodmodel says why that is kept, and not the periods' demand.
//
// # Worked example
//
//	rows := fleet.NewRows(fleet.Names{Cluster: "eu1", Node: "n17"})
//	done := rows.Add(observations) // rows of slots that have ended
//
// # Limits
//
// What happens between two rounds of which one was missed is not in any row: Seconds says how much of the slot was
// seen. Quantiles of wanted are over time, not over requests. A slot has at most MaxContainers containers; Left says
// how many more there were.
package demand
