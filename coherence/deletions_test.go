package coherence_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
)

// overtaken is a view to which the DELETED event of x at 12 came while a write of x was under way.
func overtaken(o coherence.Options, x *thing) *coherence.View {
	v := at10(o, x)
	v.Begin(x.key)
	v.Observe(coherence.Event{Key: x.key, UID: x.uid, Version: "12"})
	return v
}

// status records a deletion that was answered by a Status: without a version.
func status(v *coherence.View, x *thing, stored coherence.Object) bool {
	return v.Record(coherence.Write{Key: x.key, UID: x.uid}, stored, time.Time{})
}

func TestG4G6ADeletionThatTheWatchHasShownBeforeTheAnswerNeedsNoEntryAndNoList(t *testing.T) {
	x := &thing{key: types.NamespacedName{Name: "x"}, uid: "x", rev: 10}
	v := overtaken(coherence.Options{Whole: true}, x)
	assert.True(t, status(v, x, nil), "the server is not asked")
	assert.Nil(t, v.Read(x.key, nil))
	assert.Zero(t, v.Pending())
	v.End(x.key)
}

func TestG5ADeletionThatTheWatchHasShownHidesNobodyWhoHasTheNameSince(t *testing.T) {
	x := &thing{key: types.NamespacedName{Name: "x"}, uid: "x", rev: 10}
	v := overtaken(coherence.Options{Whole: true}, x)
	next := &thing{key: x.key, uid: "next", rev: 13}
	v.Observe(coherence.Event{Key: x.key, UID: next.uid, Object: next, Version: "13"})
	assert.True(t, status(v, x, next))
	assert.Equal(t, next, v.Read(x.key, next), "the watch has shown it")
	assert.Zero(t, v.Pending())

	v = overtaken(coherence.Options{Whole: true}, x)
	v.Begin(x.key)
	made := coherence.Write{Key: x.key, UID: next.uid, Version: "13", Object: next}
	v.Record(made, nil, time.Time{})
	v.End(x.key)
	assert.True(t, status(v, x, nil))
	assert.Equal(t, next, v.Read(x.key, nil), "we have made it, and the watch is late")
	assert.Equal(t, 1, v.Pending())
}

func TestG4WhatTheDeletedObjectWasWrittenToBeforeIsNotShownAgain(t *testing.T) {
	x := &thing{key: types.NamespacedName{Name: "x"}, uid: "x", rev: 10}
	v := at10(coherence.Options{Whole: true}, x)
	written := &thing{key: x.key, uid: x.uid, rev: 11}
	v.Begin(x.key) // of the deletion, which is sent when the update is answered
	v.Record(coherence.Write{Key: x.key, UID: x.uid, Version: "11", Object: written}, x, time.Time{})
	assert.Equal(t, written, v.Read(x.key, x))
	v.Observe(coherence.Event{Key: x.key, UID: x.uid, Version: "12"})
	assert.True(t, status(v, x, nil))
	late := coherence.Write{Key: x.key, UID: x.uid, Version: "11", Object: written}
	assert.True(t, v.Record(late, nil, time.Time{}), "its answer may be late")
	assert.Nil(t, v.Read(x.key, nil))
	assert.Zero(t, v.Pending())
}

// The answer is for the object that has the name now, the event for the one before.
func TestG4TheDeletionOfAnotherUIDDoesNotAnswerForThisOne(t *testing.T) {
	x := &thing{key: types.NamespacedName{Name: "x"}, uid: "x", rev: 10}
	v := overtaken(coherence.Options{Whole: true}, x)
	next := &thing{key: x.key, uid: "next", rev: 13}
	assert.False(t, status(v, next, nil), "it may have been deleted at any time")
	v.Observe(coherence.Event{Key: x.key, UID: next.uid, Object: next, Version: "13"})
	assert.True(t, status(v, next, next))
	assert.Nil(t, v.Read(x.key, next), "its event is yet to come")
	assert.Len(t, v.Observe(coherence.Event{Key: x.key, UID: next.uid, Version: "14"}), 1)
	assert.Zero(t, v.Pending())
}

// An object that moves out of a selector (12) may move in again (13), and then be deleted (14).
func TestG4G5ADeletedEventOfASelectiveStreamAnswersForNoDeletion(t *testing.T) {
	x := &thing{key: types.NamespacedName{Name: "x"}, uid: "x", rev: 10}
	back := &thing{key: x.key, uid: x.uid, rev: 13}
	v := overtaken(coherence.Options{}, x)
	assert.False(t, status(v, x, nil), "it may come back")
	v.Observe(coherence.Event{Key: x.key, UID: x.uid, Object: back, Version: "13"})
	assert.False(t, status(v, x, back), "only the server can tell when")
	gone := coherence.Write{Key: x.key, UID: x.uid, Version: "14"}
	assert.True(t, v.Record(gone, back, time.Time{}))
	assert.Nil(t, v.Read(x.key, back))
}

func TestG3WhatTheWatchHasShownOfDeletionsEndsWithTheLastWriteThatItMayAnswer(t *testing.T) {
	x := &thing{key: types.NamespacedName{Name: "x"}, uid: "x", rev: 10}
	v := overtaken(coherence.Options{Whole: true}, x)
	v.Begin(x.key)
	v.Begin(x.key)
	v.End(x.key) // the first one failed
	assert.True(t, status(v, x, nil), "the second deleted it")
	v.End(x.key)
	assert.True(t, status(v, x, nil), "and took nothing from the third")
	v.End(x.key)
	v.Begin(x.key)
	assert.False(t, status(v, x, nil), "nothing is kept for who comes later")
	v.End(x.key)

	v = at10(coherence.Options{Whole: true}, x)
	v.Observe(coherence.Event{Key: x.key, UID: x.uid, Version: "12"})
	v.Begin(x.key)
	assert.False(t, status(v, x, nil), "nor is anything while no write is under way")
	v.End(x.key)
}

func TestG3OneKeyMadeAndDeletedOverAndOverDuringAWriteIsBounded(t *testing.T) {
	x := &thing{key: types.NamespacedName{Name: "x"}, uid: "x", rev: 10}
	v := at10(coherence.Options{Whole: true}, x)
	v.Begin(x.key)
	before := heap()
	last := &thing{key: x.key}
	for rev := 11; rev < 100_000; rev++ {
		last.uid = types.UID(fmt.Sprint("u", rev))
		v.Observe(coherence.Event{Key: x.key, UID: last.uid, Version: version(rev)})
	}
	assert.Less(t, heap(), before+1<<20)
	assert.True(t, status(v, last, nil))
	oldest := &thing{key: x.key, uid: "u11"}
	assert.False(t, status(v, oldest, nil), "forgotten, so the server is asked")
	v.End(x.key)
}

// The backup has the object, and our request was sent after the restore.
func TestG5ADeletionOfAnotherHistoryAnswersForNothing(t *testing.T) {
	x := &thing{key: types.NamespacedName{Name: "x"}, uid: "x", rev: 5}
	v := overtaken(coherence.Options{Whole: true}, x)
	v.Reset("6")
	assert.True(t, status(v, x, x))
	assert.Nil(t, v.Read(x.key, x))
	assert.Equal(t, 1, v.Pending(), "until the watch shows it")
	assert.Len(t, v.Observe(coherence.Event{Key: x.key, UID: x.uid, Version: "7"}), 1)
	assert.True(t, status(v, x, nil), "the write is still known to be under way")
	v.End(x.key)
}

// TestG4AWriteOfAnObjectWithoutAUIDIsNotTheOneThatWasDeletedMeanwhile: some aggregated servers,
// and fakes, give none.
func TestG4AWriteOfAnObjectWithoutAUIDIsNotTheOneThatWasDeletedMeanwhile(t *testing.T) {
	v, key := coherence.NewView(coherence.Options{Whole: true}), types.NamespacedName{Name: "a"}
	v.Advance("5")
	v.Begin(key)
	v.Observe(coherence.Event{Key: key, Version: "10"})
	o := &metav1.ObjectMeta{Name: "a", ResourceVersion: "12"}
	v.Record(coherence.Write{Key: key, Object: o, Version: "12"}, nil, time.Now())
	v.End(key)
	assert.NotNil(t, v.Read(key, nil))
}
