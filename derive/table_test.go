package derive

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// A table finds what a map finds, in whatever order keys come, go and are searched for.
func TestModelATableFindsWhatAMapFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := map[int32]int{}
		rows := map[int]int32{}
		table := newTable(cmp.Compare[int], func(row int32) int { return keys[row] })
		next := 0
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			k := rapid.OneOf(rapid.Just(next), rapid.IntRange(0, 60)).Draw(t, "key")
			next = (k + 1) % 70
			row, there := rows[k]
			switch do := rapid.IntRange(0, 9).Draw(t, "do"); {
			case do < 3 && !there:
				row := table.add(k)
				if was, used := keys[row]; used {
					t.Fatalf("%d has the row of %d", k, was)
				}
				rows[k], keys[row] = row, k
			case do == 3 && there:
				table.drop(row)
				delete(rows, k)
				delete(keys, row)
			case do == 4:
				table.settle()
			case do == 5:
				var all []int
				for _, row := range table.sorted() {
					all = append(all, keys[row])
				}
				want := make([]int, 0, len(rows))
				for k := range rows {
					want = append(want, k)
				}
				slices.Sort(want)
				assert.Equal(t, want, append([]int{}, all...))
			default:
				if got, found := table.row(k); found != there || found && got != row {
					t.Fatalf("%d is in row %d %v, and the table says %d %v", k, row, there, got, found)
				}
			}
		}
	})
}
