package trial

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kates-go/kates/internal/test/golden"
)

// loop describes what a program does that makes too many calls: the round that it repeats, and
// how the last one differs from the one before.
func (r *Run) loop(first, allowed int) error {
	calls := slices.DeleteFunc(r.rec.since(first), func(c Call) bool { return c.open })
	calls = calls[:allowed+1] // it goes on meanwhile
	var text strings.Builder
	fmt.Fprintf(&text, "the program does not settle: it has made more than %d calls.", allowed)
	length, rounds := round(calls)
	if rounds < 2 {
		text.WriteString(" It is in no loop of equal rounds.")
		if !repeated(&text, calls) {
			text.WriteString(" None is repeated:")
			some(&text, calls)
		}
		return errors.New(text.String())
	}
	fmt.Fprintf(&text, " It is in a loop: it repeats a round of %d, %d times so far. The last round:", length, rounds)
	last := calls[len(calls)-length:]
	before := calls[len(calls)-2*length:]
	for i := range last {
		show(&text, &last[i], &before[i])
	}
	return errors.New(text.String())
}

// round returns the length of the shortest round that the calls end with, and how often they
// repeat it. Rounds that make the same objects go before others: of two writers that undo each
// other's work it has both. Rounds have no fixed beginning.
func round(calls []Call) (length, rounds int) {
	for _, exact := range []bool{true, false} {
		for length = 1; 2*length <= len(calls); length++ {
			equal := 0
			for i := len(calls) - 1; i >= length && calls[i].again(&calls[i-length], exact); i-- {
				equal++
			}
			if equal >= length && equal >= len(calls)/2 {
				return length, equal/length + 1
			}
		}
	}
	return 0, 0
}

// again reports whether a call is that of the round before.
func (c *Call) again(before *Call, exact bool) bool {
	return c.same(before) && (!exact || len(golden.Fields(before.Object, c.Object)) == 0)
}

// repeated shows which calls come again and again, where they have no fixed order: several workers
// make them.
func repeated(text *strings.Builder, calls []Call) (any bool) {
	done := make([]bool, len(calls))
	for i := len(calls) - 1; i >= 0; i-- {
		if done[i] {
			continue
		}
		count, before := 1, -1
		for k := i - 1; k >= 0; k-- {
			if !calls[i].same(&calls[k]) {
				continue
			}
			done[k] = true
			count++
			if before < 0 {
				before = k
			}
		}
		if before >= 0 {
			fmt.Fprintf(text, "\n%d times:", count)
			show(text, &calls[i], &calls[before])
			any = true
		}
	}
	return any
}

// some lists the last calls.
func some(text *strings.Builder, calls []Call) {
	for _, c := range calls[max(0, len(calls)-20):] {
		fmt.Fprintf(text, "\n  %s", c.outcome())
	}
}

// show shows a call, what it has changed, and how its object differs from that of the round
// before.
func show(text *strings.Builder, c, before *Call) {
	fmt.Fprintf(text, "\n  %s", c.outcome())
	if !c.writes() || c.Object == nil {
		return
	}
	if c.Before != nil {
		lines(text, "it changes", "it changes nothing", golden.Fields(c.Before, c.Object))
	}
	lines(text, "since the round before", "the object is as in the round before", golden.Fields(before.Object, c.Object))
}

func lines(text *strings.Builder, some, none string, differences []string) {
	if len(differences) == 0 {
		fmt.Fprintf(text, "\n      %s", none)
	}
	for _, d := range differences {
		fmt.Fprintf(text, "\n      %s  %s", some, d)
	}
}
