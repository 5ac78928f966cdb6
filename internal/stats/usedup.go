package stats

// UsedUp is the share of a CPU limit from which on its mean use counts as all of it: more work finds no room. The edges of periods account
// for the rest to 100 %.
const UsedUp = 0.95
