package e2e

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
)

// pretender plays a client that watches, for the judge: a store that is late, own writes laid over
// it, and a history that begins anew. A bug can be put into it.
type pretender struct {
	*trial
	c    *chronicle
	r    *rand.Rand
	bug  string
	rv   uint64      // of etcd
	at   uint64      // the position of the watch
	own  map[id]spot // own writes
	old  int         // the era that is shown
	time time.Time   // of the last look
	// backup has what the objects were up to a backup, whatever the chronicle has forgotten.
	backup map[id][]state
}

func newPretender(seed uint64, bug string) *pretender {
	w := &world{namespaces: []string{"ns"}}
	q := query{Query: kates.Query{Kind: "configmaps"}, in: []string{"ns"}, selects: []selection{{labels: labels.Everything(), fields: fields.Everything()}}}
	j := &witness{w: w, name: "pretender", queries: []query{q}, shown: map[id]seen{}}
	return &pretender{trial: newTrial(j, 0), c: newChronicle(w), r: rand.New(rand.NewPCG(seed, 0)), bug: bug, own: map[id]spot{}, time: time.Unix(0, 0)}
}

// write changes an object, as the client or as another program.
func (p *pretender) write() {
	k := id{"configmaps", "ns", string(rune('a' + p.r.IntN(4)))}
	h := p.c.now()
	before := h.states[k]
	p.rv++
	s := state{objectRV: p.rv, uid: types.UID(fmt.Sprint("u", p.rv)), content: p.rv}
	if n := len(before); n > 0 && !before[n-1].gone {
		s.uid, s.gone = before[n-1].uid, p.r.IntN(3) == 0
	}
	h.states[k] = append(before, s)
	own := p.r.IntN(2) == 0
	if own {
		p.own[k] = spot{len(p.c.eras) - 1, p.rv}
	}
	if s.gone {
		h.byUID[s.uid] = p.rv
	}
	if !own {
		return
	}
	e := written{verb: "some", id: k, uid: s.uid}
	if !s.gone {
		e.objectRV = p.rv
	}
	p.w.record = append(p.w.record, e)
}

// state returns what the client's view has of an object.
func (p *pretender) state(k id) (s state) {
	at := p.at
	if o := p.own[k]; o.era == p.old && o.rv > at && p.bug != "own writes are shown when the watch brings them" {
		at = o.rv
	}
	if p.bug == "an older version comes back" && p.r.IntN(10) == 0 {
		at -= min(at, 3)
	}
	for _, next := range slices.Concat(p.backup[k], p.c.eras[p.old].states[k]) {
		if next.objectRV <= at && !(next.gone && p.bug == "what is deleted stays") {
			s = next
		}
	}
	return s
}

// look reads a snapshot.
func (p *pretender) look() {
	p.time = p.time.Add(time.Second)
	known, _ := p.w.known()
	now := look{known: known, now: map[id]seen{}, at: p.time}
	empty := p.bug == "an outage empties a field" && p.r.IntN(20) == 0
	p.shown = map[id]seen{}
	for i := range 4 {
		k := id{"configmaps", "ns", string(rune('a' + i))}
		var shown seen
		if s := p.state(k); s.uid != "" && !s.gone && !empty {
			shown = seen{uid: s.uid, objectRV: s.objectRV, content: s.content}
			if p.bug == "another content is shown" && p.r.IntN(10) == 0 {
				shown.content++
			}
			p.shown[k] = seen{uid: shown.uid, objectRV: shown.objectRV}
		}
		now.now[k] = shown
	}
	p.looks = append(p.looks, now)
}

// some lets things happen.
func (p *pretender) some() {
	for range 60 {
		switch p.r.IntN(3) {
		case 0:
			p.write()
		case 1:
			p.at += p.r.Uint64N(p.rv - min(p.at, p.rv) + 1)
		case 2:
			p.look()
		}
	}
}

// run plays two histories with a restore between them, and judges them.
func (p *pretender) run() error {
	p.some()
	backup := 1 + p.r.Uint64N(max(1, p.rv)) // some objects are newer
	p.some()
	return p.back(backup)
}

// back goes back to a backup, plays what comes then, and judges all.
func (p *pretender) back(backup uint64) error {
	if err := p.c.restored(p.time, int64(backup), []*world{p.w}); err != nil {
		return err
	}
	p.look()
	if p.bug != "the end of the old history stays" {
		p.old, p.at, p.rv = 1, backup, backup
	} else {
		p.rv = backup
	}
	p.some()
	if p.bug == "the old history comes back" {
		p.look()
		p.old, p.at = 0, p.at+100
		p.look()
		p.old = 1
	}
	p.at = p.rv
	p.look()
	if err := p.judge(p.c); err != nil {
		return err
	}
	return p.present(p.c)
}

func TestTheJudgeOfLongRunsAcceptsWhatRulesAllowAndNoticesBugsPutInOnPurpose(t *testing.T) {
	const games = 50
	noticed := map[string]int{}
	bugs := []string{
		"", "own writes are shown when the watch brings them", "an older version comes back", "what is deleted stays",
		"an outage empties a field", "another content is shown", "the end of the old history stays", "the old history comes back",
	}
	for _, bug := range bugs {
		for game := range uint64(games) {
			err := newPretender(game, bug).run()
			if bug == "" {
				assert.NoError(t, err, "game %d", game)
			}
			if err != nil {
				noticed[bug]++
			}
		}
		if bug != "" {
			assert.Greater(t, noticed[bug], games*3/4, bug)
		}
	}
	t.Log(noticed)
}

func TestAKindMayBeAbsentOnlyWhileItsDefinitionIsInDoubt(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	c := &chronicle{doubts: []doubt{{resource: "hosts", began: at(10), over: at(20)}}}
	says := map[string]bool{"hosts": true}
	for _, l := range []struct {
		look
		resource string
		want     bool
	}{
		{look{at: at(9), unserved: says}, "hosts", false},
		{look{at: at(10)}, "hosts", true},
		{look{at: at(21)}, "hosts", true},
		{look{at: at(30)}, "hosts", false},
		{look{at: at(30), unserved: says}, "hosts", true},
		{look{at: at(30), unserved: says}, "pods", false},
		{look{at: at(300), unserved: says}, "hosts", false},
	} {
		assert.Equal(t, l.want, c.doubted(l.resource, l.look), "%s at %v", l.resource, l.at)
	}
	c.doubts = append(c.doubts, doubt{resource: "hosts", began: at(400)})
	assert.True(t, c.doubted("hosts", look{at: at(1000)}), "it is not over")
}

func TestWhatHasBeenJudgedIsForgotten(t *testing.T) {
	p := newPretender(1, "")
	if !assert.NoError(t, p.run()) {
		return
	}
	p.c.ready = int64(p.rv)
	p.c.forget([]*trial{p.trial}, math.MaxInt64)
	assert.Len(t, p.c.eras, 1)
	for k, states := range p.c.eras[0].states {
		assert.Len(t, states, 1, "%v", k)
	}
	before := maps.Clone(p.shown)
	p.old = 0
	p.own = map[id]spot{}
	p.look()
	assert.Equal(t, before, p.shown)
	assert.NoError(t, p.judge(p.c), "it goes on")
	p.looks[len(p.looks)-1].now = map[id]seen{}
	for k := range p.shown {
		p.looks[len(p.looks)-1].now[k] = seen{}
	}
	assert.ErrorContains(t, p.judge(p.c), "is not shown", "and what was there is still there")
}

// again plays a history, forgets what was judged, and goes back to a backup from before that.
func (p *pretender) again() error {
	p.some()
	backup := 1 + p.r.Uint64N(max(1, p.rv))
	p.some()
	p.at = p.rv
	p.look()
	if err := p.judge(p.c); err != nil {
		return err
	}
	p.backup = map[id][]state{}
	for k, states := range p.c.now().states {
		p.backup[k] = slices.DeleteFunc(slices.Clone(states), func(s state) bool { return s.objectRV > backup })
	}
	p.c.ready = int64(p.rv)
	p.c.forget([]*trial{p.trial}, int64(1+p.r.Uint64N(backup)))
	return p.back(backup)
}

func TestARestoreMayGoBackBehindWhatWasJudged(t *testing.T) {
	noticed := 0
	for game := range uint64(50) {
		assert.NoError(t, newPretender(game, "").again(), "game %d", game)
		if newPretender(game, "the end of the old history stays").again() != nil {
			noticed++
		}
	}
	assert.Greater(t, noticed, 50*3/4)
}

func TestARestoreToWhatIsForgottenIsNoMatterForTheJudge(t *testing.T) {
	p := newPretender(1, "")
	p.some()
	p.c.ready = int64(p.rv)
	p.c.forget([]*trial{p.trial}, int64(p.rv)-3)
	assert.ErrorContains(t, p.back(p.rv-4), "the chronicle has forgotten what was before")
	assert.Len(t, p.c.eras, 1)
	assert.NoError(t, p.c.restored(p.time, int64(p.rv)-3, nil))
}

func TestARoundIsOverWhenAllWatchesAreOpenInTheNewHistory(t *testing.T) {
	for name, c := range map[string]struct {
		q    kates.QueryStatus
		want bool
	}{
		"it is open":                           {kates.QueryStatus{State: kates.StateSynced, Version: "100"}, true},
		"it has no streams":                    {kates.QueryStatus{State: kates.StateSynced}, true},
		"it pauses before it asks again":       {kates.QueryStatus{State: kates.StateRetrying, Version: "100"}, false},
		"it has not noticed that its end came": {kates.QueryStatus{State: kates.StateSynced, Version: "101"}, false},
		"it has an own write":                  {kates.QueryStatus{State: kates.StateSynced, Version: "100", Pending: 1}, false},
		"it waits for the watch":               {kates.QueryStatus{State: kates.StateSynced, Version: "100", Unsettled: 1}, false},
	} {
		assert.Equal(t, c.want, calm(c.q, 100), name)
	}
}
