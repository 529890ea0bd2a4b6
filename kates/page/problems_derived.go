package page

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kates-go/kates/derive"
)

// When runs for nothing are worth a word: so many runs in the last minutes, of which so large a
// part gave what was there.
const (
	manyRuns   = 1000
	wastedPart = 0.9
)

// derived says what is wrong with a graph.
func (f *finder) derived(of derive.Stats) {
	at := link("derived", "graph", of.Graph)
	if of.ImpureTotal > 0 {
		f.add(Problem{
			Cause: "impure", Effect: Wrong, Link: at + "#" + graphID(of.Graph), Detail: strings.Join(f.page.textsOf(of.Impure), "\n"),
			What: fmt.Sprintf("Functions of the graph %s do not give again what they gave: the audit has found that %s.",
				quoted(of.Graph), times(int(of.ImpureTotal))),
			Do: "A function may read its arguments and what it looks up, and nothing else: no clock, no variable, no order of a map. " +
				"It writes to none of them. Test the graph with katestest.Derives, which names what differs.",
		})
	}
	invalid := map[string]int{}
	for _, n := range of.Nodes {
		link := link("derived", "graph", of.Graph, "node", n.Name) + "#" + graphID(of.Graph)
		f.wasted(of.Graph, n, link)
		invalid[n.Name] = n.Invalid
		if n.Invalid == 0 || n.Invalid <= invalid[becauseOf(n)] && becauseOf(n) != n.Name {
			continue // what it is made of is said
		}
		p := Problem{
			Cause: "derive-invalid", Effect: Wrong, Link: link,
			What: fmt.Sprintf("The node %s of the graph %s has %s: the function has failed, or a key is there twice.",
				quoted(n.Name), quoted(of.Graph), count(n.Invalid, "invalid entry", "invalid entries")),
			Do: "Correct what they are made of, or the function. What is made of an invalid entry is invalid, too. " +
				"The link explains an entry by its key.",
		}
		if n.Example != nil {
			p.Detail = f.page.text(n.Example.Error())
		}
		f.add(p)
	}
}

// becauseOf is the node whose invalid entry is the reason of a node's example; the node itself if
// there is no other.
func becauseOf(n derive.NodeStats) string {
	name := n.Name
	var of *derive.EntryError
	for err := n.Example; errors.As(err, &of); err = of.Err {
		name = of.Node
	}
	return name
}

// wasted says that nearly all runs of a node's function give what was there.
func (f *finder) wasted(graph string, n derive.NodeStats, to string) {
	runs := f.page.history.grown(nodeSeries(graph, n.Name, "runs"), fineSpan, f.at)
	equal := f.page.history.grown(nodeSeries(graph, n.Name, "equal"), fineSpan, f.at)
	if runs < manyRuns || equal < wastedPart*runs {
		return
	}
	p := Problem{
		Cause: "wasted-runs", Effect: Expensive, Link: to, Detail: f.page.causeOf(n.EqualBecause),
		What: fmt.Sprintf("The function of the node %s of the graph %s ran %s times in the last minutes, and %s times it gave what was there. "+
			"What made one of them run is below.", quoted(n.Name), quoted(graph), number3(runs), number3(equal)),
		Do: "It looks up what changes in parts that it does not use. Put a Map before it that keeps what it uses, or give the node that it " +
			"looks up an Equal that compares that.",
	}
	if strings.HasPrefix(n.EqualBecause, wholeOf) {
		p.Do = "A function that reads All, Len or Invalid of a collection runs at each change in it. Look up what it needs with Get, " +
			"or with an index: GroupBy, ByLabels, BySelector."
	}
	f.add(p)
}
