package mutants

import (
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// How many mutants there are. All are tried each time, so each has to be worth its time.
const (
	most         = 200
	mostPromises = 60
	perRule      = 3
	perGuarantee = 2
)

func all() []mutant {
	return slices.Concat(position, entry, floor, tombstone, classifier, settling, coverage, probe, echo,
		lastState, boxed, warm, derived, collecting, isolation, overlay, loops, partitions, controllers, replicas,
		writes, held, clusters, wire, tools, ofFake)
}

// rules keep the guarantees on own writes and monotony, warmRules those of warm starts: package
// coherence explains them. boxRules have each object in one stream of a query: package
// internal/engine/query does.
var (
	rules     = []string{"position", "entry", "floor", "tombstone", "classifier", "settling", "coverage", "probe", "echo", "last state"}
	warmRules = []string{"W1", "W2", "W3", "W4"}
	boxRules  = []string{"D1", "D2", "D3"}
)

// promised are the promises that doc.go lists.
func promised(t *testing.T) (all []string) {
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments)
	require.NoError(t, err)
	for _, item := range strings.Split(file.Doc.Text(), "\n  - ")[1:] {
		item, _, _ = strings.Cut(item, "\n\n")
		all = append(all, strings.Join(strings.Fields(item), " "))
	}
	return all
}

func TestTheTableIsWhole(t *testing.T) {
	s, err := tree()
	require.NoError(t, err)
	_, err = weave(s, all(), readSource)
	assert.NoError(t, err, "a place is gone: find the code that does its job now")
	promises := promised(t)
	assert.LessOrEqual(t, len(all()), most)
	assert.LessOrEqual(t, len(promises), mostPromises)
	known, count := slices.Concat(rules, warmRules, boxRules, deriveRules, promises), map[string]int{}
	for _, p := range peers {
		known = append(known, string(p))
	}
	names, ids := map[string]bool{}, map[string]bool{}
	for _, m := range all() {
		assert.False(t, names[m.name] || ids[m.id()], "two mutants %q", m.name)
		names[m.name], ids[m.id()] = true, true
		_, err := s.test(m.caught, m.pkg)
		assert.NoError(t, err, m.name)
		if m.says == "" && !slices.Contains(slices.Concat(warmRules, boxRules, deriveRules), m.rule) {
			assert.NotEmpty(t, m.guarantees(), "%s: %s names no guarantee", m.name, m.caught)
		}
		for _, of := range append(m.guarantees(), m.rule, string(m.peer), m.says) {
			count[of]++
		}
		if of := m.breaks(); !slices.Equal(m.guarantees(), strings.Fields(of)) {
			assert.Contains(t, known, of, m.name)
		}
	}
	for _, of := range known {
		assert.Positive(t, count[of], "no mutant for %q", of)
	}
	for _, rule := range rules {
		assert.GreaterOrEqual(t, count[rule], perRule, "mutants of the rule %q", rule)
	}
	for _, g := range guarantees {
		assert.GreaterOrEqual(t, count[g], perGuarantee, "mutants of the guarantee %s", g)
	}
}

var guarantees = []string{"G1", "G2", "G3", "G4", "G5", "G6", "G7", "G8", "G9", "G10", "G11"}
