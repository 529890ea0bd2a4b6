package wire

import (
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/internal/client/wire/frames"
	"github.com/kates-go/kates/internal/client/wire/ordered"
	objects "github.com/kates-go/kates/internal/object"
)

// hostText is an item that a few others fill a batch with.
func hostText(name, more string) string {
	return fmt.Sprintf(`{"kind":"Host","apiVersion":"example.com/v1","metadata":{"name":%q},"pad":%q%s}`,
		name, strings.Repeat("x", batchBytes/4), more)
}

// took is what was taken in of a list.
type took struct {
	names []string
	err   string
}

// readHosts reads a list of hosts with the help of a pool.
func readHosts(p *ordered.Pool, text string, put func(objects.Object) error) (t took) {
	s := &restSource{resource: hosts, lists: newLists(hosts.Kind), helpers: p}
	_, _, err := s.readList(io.NopCloser(strings.NewReader(text)), s.decode, func(o apiruntime.Object) error {
		t.names = append(t.names, o.(objects.Object).GetName())
		return put(o.(objects.Object))
	}, nil)
	if err != nil {
		t.err = err.Error()
	}
	return t
}

func taken(objects.Object) error { return nil }

// TestG9ItemsAreTakenInAsTheyCameWhoeverDecodesThem reads lists of good and bad items, some of
// them cut, with and without helpers: what is taken in, and the error, are the same.
func TestG9ItemsAreTakenInAsTheyCameWhoeverDecodesThem(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var all []string
		for n := range rapid.IntRange(0, 40).Draw(rt, "items") {
			name := fmt.Sprint("host-", n)
			item := hostText(name, "")
			switch rapid.IntRange(0, 60).Draw(rt, "item") {
			case 0:
				item = hostText(name, `,"a":1,"a":2`)
			case 1:
				item = strings.Replace(item, `"Host"`, `"Other"`, 1)
			case 2:
				item = `{"kind":"Host"}`
			case 3, 4, 5:
				item = `{"metadata":{"name":"` + name + `"}}`
			}
			all = append(all, item)
		}
		text := listText("HostList", all...)
		if rapid.IntRange(0, 3).Draw(rt, "cut") == 0 {
			text = text[:rapid.IntRange(0, len(text)).Draw(rt, "at")]
		}
		full := rapid.IntRange(0, 80).Draw(rt, "room")
		room := func(o objects.Object) error {
			if o.GetName() == fmt.Sprint("host-", full) {
				return io.ErrShortWrite
			}
			return nil
		}
		want := readHosts(nil, text, room)
		pool := &ordered.Pool{Helpers: rapid.IntRange(1, 3).Draw(rt, "helpers"), Bytes: rapid.Int64Range(1, 1<<20).Draw(rt, "bytes")}
		if got := readHosts(pool, text, room); !assert.ObjectsAreEqual(want, got) {
			rt.Fatalf("taken in: %v, and without helpers %v", got, want)
		}
	})
}

func TestTheErrorOfAListIsThatOfTheFirstItemThatIsWrong(t *testing.T) {
	var all []string
	for n := range 11 {
		all = append(all, hostText(fmt.Sprint(n), ""))
	}
	text := listText("HostList", append(all, hostText("bad", `,"a":1,"a":2`), hostText("cut", ""))...)
	got := readHosts(&ordered.Pool{Helpers: 1}, text[:len(text)-9], taken)
	assert.Len(t, got.names, 11)
	assert.Contains(t, got.err, `the Host "/bad": it is damaged`)
}

func TestG8WhatPanicsInAHelperIsAnObjectThatDoesNotDecode(t *testing.T) {
	var all []string
	for n := range 40 {
		all = append(all, hostText(fmt.Sprint(n), ""))
	}
	d := newDecoder(hosts, reflect.TypeFor[panics](), false)
	s := &restSource{resource: hosts, lists: newLists(hosts.Kind), helpers: &ordered.Pool{Helpers: 2}}
	bad := 0
	_, _, err := s.readList(io.NopCloser(strings.NewReader(listText("HostList", all...))), d.item, func(o apiruntime.Object) error {
		require.Equal(t, fmt.Sprint(bad), o.(objects.Object).GetName())
		require.ErrorContains(t, objects.Fault(o.(objects.Object)), "the user's mistake")
		bad++
		return nil
	}, nil)
	require.NoError(t, err)
	assert.Equal(t, 40, bad)
}

// TestWithOneCoreAnItemIsTakenInBeforeTheNextIsRead shows that nothing is copied, and that nothing
// waits for a batch to be full.
func TestWithOneCoreAnItemIsTakenInBeforeTheNextIsRead(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	n := 0
	i := newItems(new(ordered.Pool), func(raw []byte, _ frames.Encoding) (objects.Object, bool, error) {
		raw[0] = 'x' // the bytes are those that were read
		return nil, false, nil
	}, func(objects.Object, bool) error {
		n++
		return nil
	})
	defer i.close()
	for m := range 3 {
		raw := []byte("item")
		require.NoError(t, i.add(raw, frames.JSON))
		assert.Equal(t, "xtem", string(raw))
		assert.Equal(t, m+1, n)
	}
}

// TestAShortListNeedsNoHelper shows that the few items of a look-up are decoded where they are
// read.
func TestAShortListNeedsNoHelper(t *testing.T) {
	text := listText("HostList", hostText("a", ""), hostText("b", ""))
	got := readHosts(&ordered.Pool{Helpers: 1, Bytes: 1}, text, taken)
	assert.Equal(t, took{names: []string{"a", "b"}}, got)
	main := make(chan bool, 1)
	i := newItems(&ordered.Pool{Helpers: 1}, func([]byte, frames.Encoding) (objects.Object, bool, error) {
		stack := make([]byte, 1<<14)
		main <- strings.Contains(string(stack[:runtime.Stack(stack, false)]), t.Name())
		return nil, false, nil
	}, func(objects.Object, bool) error { return nil })
	defer i.close()
	require.NoError(t, i.add([]byte("{}"), frames.JSON))
	require.NoError(t, i.flush())
	assert.True(t, <-main, "it was decoded in another goroutine")
}

// panics is a type whose objects do not decode.
type panics struct{ metav1.PartialObjectMetadata }

func (*panics) UnmarshalJSON([]byte) error { panic("the user's mistake") }
