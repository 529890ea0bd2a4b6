package model_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kates-go/kates/examples/snapwatch/model"
)

var start = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return start.Add(d) }

func TestTheFirstSnapshotIsNoChange(t *testing.T) {
	m := model.New("services", "pods")
	m.Snapshot(start, []int{2, 0}, []model.Change{
		{Type: model.Added, Name: "a"}, {Type: model.Added, Name: "b"},
	})
	p := m.Picture(start)
	assert.Equal(t, 1, p.Number)
	assert.Empty(t, p.Changes)
	assert.Equal(t, 2, p.Kinds[0].Count)
	assert.Zero(t, p.Kinds[0].Added)
	assert.True(t, p.Kinds[1].Known)
}

func TestASnapshotCountsItsOwnChangesPerKind(t *testing.T) {
	m := model.New("services", "pods")
	m.Snapshot(start, []int{1, 1}, nil)
	m.Snapshot(after(time.Second), []int{2, 0}, []model.Change{
		{Type: model.Added, Kind: 0, Name: "a"}, {Type: model.Updated, Kind: 0, Name: "b"},
		{Type: model.Deleted, Kind: 1, Name: "c"}, {Type: model.Added, Kind: 7, Name: "of no kind"},
	})
	p := m.Picture(after(time.Second))
	assert.Equal(t, [3]int{1, 1, 0}, [3]int{p.Kinds[0].Added, p.Kinds[0].Updated, p.Kinds[0].Deleted})
	assert.Equal(t, 1, p.Kinds[1].Deleted)
	assert.Equal(t, "a", p.Changes[0].Name)
	assert.Equal(t, 2, p.Changes[0].Snapshot)
	assert.Len(t, p.Changes, 3)

	m.Snapshot(after(2*time.Second), []int{2, 0}, nil)
	p = m.Picture(after(2 * time.Second))
	assert.Zero(t, p.Kinds[0].Added, "the changes are those of the last snapshot")
	assert.Len(t, p.Changes, 3)

	m.Snapshot(after(3*time.Second), []int{2, 0}, []model.Change{{Type: model.Updated, Name: "z"}})
	p = m.Picture(after(3 * time.Second))
	assert.Equal(t, "z", p.Changes[0].Name, "those of the newest snapshot are first")
	assert.Equal(t, "a", p.Changes[1].Name, "a snapshot's are in their order")
}

func TestAnAbsentKindHasNoCount(t *testing.T) {
	m := model.New("hosts")
	m.Snapshot(start, []int{-1}, nil)
	assert.False(t, m.Picture(start).Kinds[0].Known)
	assert.Zero(t, m.Picture(start).Kinds[0].Count)
}

func TestRatesAreThoseOfTheLastTenSeconds(t *testing.T) {
	m := model.New("pods")
	events := uint64(1000) // of the first list: no rate
	m.Sample(start, []model.Sample{{Events: 1}})
	m.Sample(start, []model.Sample{{Events: events}})
	m.Snapshot(start, []int{999}, nil)
	assert.Zero(t, m.Picture(start).Kinds[0].EventRate)
	for i := range 20 {
		events += 5
		m.Sample(after(time.Duration(i)*time.Second), []model.Sample{{Events: events}})
	}
	assert.InDelta(t, 5, m.Picture(after(19 * time.Second)).Kinds[0].EventRate, 0.001)
	assert.InDelta(t, 2.5, m.Picture(after(24 * time.Second)).Kinds[0].EventRate, 0.001)
	assert.Zero(t, m.Picture(after(time.Minute)).Kinds[0].EventRate)
	assert.Zero(t, m.Picture(after(0)).Kinds[0].EventRate, "a clock that goes back is no panic")
}

func TestShortlyAfterTheStartARateIsOfTheTimeSince(t *testing.T) {
	m := model.New("pods")
	m.Snapshot(start, []int{0}, nil)
	m.Snapshot(start, []int{4}, make4(model.Added))
	assert.InDelta(t, 4, m.Picture(start).Kinds[0].ChangeRate, 0.001)
	assert.InDelta(t, 2, m.Picture(after(time.Second)).Kinds[0].ChangeRate, 0.001)
}

func make4(t model.Type) (all []model.Change) {
	for i := range 4 {
		all = append(all, model.Change{Type: t, Name: fmt.Sprint(i)})
	}
	return all
}

func TestCoalescedEventsAreThoseSinceTheSnapshotBefore(t *testing.T) {
	m := model.New("pods")
	m.Sample(start, []model.Sample{{Events: 10, Coalesced: 3}})
	m.Snapshot(start, []int{7}, nil)
	assert.Zero(t, m.Picture(start).Kinds[0].Skipped)
	m.Sample(start, []model.Sample{{Events: 20, Coalesced: 8}})
	m.Sample(start, []model.Sample{{Events: 30, Coalesced: 12}})
	m.Snapshot(start, []int{7}, nil)
	assert.EqualValues(t, 9, m.Picture(start).Kinds[0].Skipped)
	m.Snapshot(start, []int{7}, nil)
	assert.Zero(t, m.Picture(start).Kinds[0].Skipped)

	m.Sample(start, []model.Sample{{Events: 1, Coalesced: 0}}) // a new watch counts from 0
	m.Snapshot(start, []int{7}, nil)
	assert.Zero(t, m.Picture(start).Kinds[0].Skipped)
}

func TestTheListOfChangesIsBounded(t *testing.T) {
	m := model.New("pods")
	m.Snapshot(start, []int{0}, nil)
	for i := range model.Most {
		m.Snapshot(start, []int{1}, []model.Change{
			{Name: fmt.Sprint("a", i)}, {Name: fmt.Sprint("b", i)},
		})
	}
	p := m.Picture(start)
	assert.Len(t, p.Changes, model.Most)
	assert.Equal(t, fmt.Sprint("a", model.Most-1), p.Changes[0].Name)
}

func TestAPictureIsTheCallers(t *testing.T) {
	m := model.New("pods")
	m.Snapshot(start, []int{0}, nil)
	m.Snapshot(start, []int{1}, []model.Change{{Name: "a"}})
	p := m.Picture(start)
	p.Changes[0].Name, p.Kinds[0].Name = "x", "y"
	assert.Equal(t, "a", m.Picture(start).Changes[0].Name)
	assert.Equal(t, "pods", m.Picture(start).Kinds[0].Name)
}
