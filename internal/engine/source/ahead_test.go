package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
)

// leaf is a page as a server has it.
type leaf struct {
	items       int
	bytes       int64
	remaining   *int64
	next        string // the token for the next page
	last        bool   // its metadata come behind the items
	opens, read time.Duration
	opensErr    error
	readErr     error
}

// book is a server of pages, by their tokens. The page for no limit is that of the token "whole".
type book struct {
	leaves map[string]leaf
	open   atomic.Int64 // pages that are asked for or open
	most   int64
	bound  time.Duration // of the time for a request, if the reader keeps none
	asked  []metav1.ListOptions
}

func (b *book) OpenPage(ctx context.Context, o metav1.ListOptions) (Page, error) {
	b.asked = append(b.asked, o)
	b.most = max(b.most, b.open.Add(1))
	token := o.Continue
	if o.Limit == 0 && token == "" {
		token = "whole"
	}
	l := b.leaves[token]
	if b.bound > 0 {
		l = l.bounded(b.bound)
	}
	Sleep(ctx, l.opens)
	err := l.opensErr
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		b.open.Add(-1)
		return nil, err
	}
	return &openLeaf{ctx, b, token, l}, nil
}

type openLeaf struct {
	ctx   context.Context
	book  *book
	token string
	leaf
}

func (p *openLeaf) Close() { p.book.open.Add(-1) }

func (p *openLeaf) Bytes() int64 { return p.bytes }

func (p *openLeaf) Items(put func(runtime.Object) error, head func(metav1.ListMeta)) (m metav1.ListMeta, err error) {
	defer p.Close()
	m = metav1.ListMeta{ResourceVersion: "of " + p.token, Continue: p.next, RemainingItemCount: p.remaining}
	if !p.last && head != nil {
		head(m)
	}
	for n := range p.items {
		one := &metav1.PartialObjectMetadata{}
		one.Name = fmt.Sprintf("%s-%d", p.token, n)
		if err := put(one); err != nil {
			return m, err
		}
	}
	Sleep(p.ctx, p.read)
	if p.ctx.Err() != nil {
		return m, p.ctx.Err()
	}
	return m, p.readErr
}

// reading is what Pages makes of a book.
type reading struct {
	names []string
	rv    string
	err   string
}

// reads lists a book, page by page, or with one page ahead.
func (b *book) reads(ctx context.Context, onePageAhead bool, put func(name string) error) (r reading) {
	return b.readsIn(ctx, onePageAhead, nil, put)
}

func (b *book) readsIn(ctx context.Context, onePageAhead bool, of *sizes, put func(name string) error) (r reading) {
	list := func(ctx context.Context, o metav1.ListOptions, put func(runtime.Object) error) (metav1.ListMeta, error) {
		b.bound = pageTime(o)
		p, err := b.OpenPage(ctx, o)
		if err != nil {
			return metav1.ListMeta{}, err
		}
		return p.Items(put, nil)
	}
	if onePageAhead {
		pages := &ahead{source: b, most: pageTime, sizes: of}
		defer pages.close()
		list = pages.list
	}
	rv, err := Pages(ctx, list, metav1.ListOptions{ResourceVersion: "7", Limit: 9}, func() func(runtime.Object) error {
		r.names = nil
		return func(o runtime.Object) error {
			name := o.(*metav1.PartialObjectMetadata).Name
			r.names = append(r.names, name)
			return put(name)
		}
	})
	if r.rv = rv; err != nil {
		r.err = err.Error()
	}
	return r
}

func anything(string) error { return nil }

// chain is a book of equal pages.
func chain(n int, l leaf) *book {
	b := &book{leaves: map[string]leaf{}}
	for i := range n {
		one, token := l, fmt.Sprint(i)
		if i == 0 {
			token = ""
		}
		if i < n-1 {
			one.next = fmt.Sprint(i + 1)
		}
		b.leaves[token] = one
	}
	return b
}

func drawBook(t *rapid.T) map[string]leaf {
	tokens := []string{"", "a", "b", "c", "d", "e", "whole"}
	errs := []error{nil, nil, nil, nil, nil, nil, nil, apierrors.NewResourceExpired("too old"), errors.New("broken")}
	seconds := rapid.SampledFrom([]time.Duration{0, time.Second, time.Second, 20 * time.Second, 4 * time.Minute})
	leaves := map[string]leaf{}
	for i, token := range tokens {
		l := leaf{
			items: rapid.IntRange(0, 3).Draw(t, "items"), bytes: rapid.Int64Range(0, 9<<20).Draw(t, "bytes"), last: rapid.IntRange(0, 4).Draw(t, "last") == 0,
			opens: seconds.Draw(t, "opens"), read: seconds.Draw(t, "read"),
			opensErr: rapid.SampledFrom(errs).Draw(t, "error of the request"), readErr: rapid.SampledFrom(errs).Draw(t, "error of the page"),
		}
		if n := rapid.Int64Range(-3, 9000).Draw(t, "remaining"); n > 0 {
			l.remaining = &n
		}
		if i != 5 && rapid.IntRange(0, 6).Draw(t, "goes on") > 0 {
			l.next = tokens[1:][i%6] // a server may go on after a page without a limit
			if rapid.IntRange(0, 9).Draw(t, "goes round") == 0 {
				l.next = rapid.SampledFrom(tokens[1:6]).Draw(t, "next")
			}
		}
		leaves[token] = l
	}
	return leaves
}

// TestG1OnePageAheadChangesNothingOfAList reads books of any pages, with one page ahead and
// without: the items, their order, the version and the error are the same. No more than two pages
// are open, the next one only while one is read, and none is left. Requests differ in their token
// alone, and have no version where they have a token.
func TestG1OnePageAheadChangesNothingOfAList(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		leaves := rapid.Custom(drawBook).Draw(rt, "book")
		refused := rapid.SampledFrom([]string{"", "", "b-0", "c-1"}).Draw(rt, "refused")
		ends := time.Duration(rapid.SampledFrom([]int{9999, 9999, 0, 1, 3, 30}).Draw(rt, "ends")) * time.Second
		put := func(name string) error {
			if name == refused {
				return errors.New("no room")
			}
			return nil
		}
		var of *sizes // of pages of any size it makes no other list, either
		if rapid.Bool().Draw(rt, "by bytes") {
			of = &sizes{}
		}
		var want, got reading
		plain, early := &book{leaves: leaves}, &book{leaves: leaves}
		synctest.Test(t, func(*testing.T) {
			if ends < time.Hour { // when it ends differs: only that it ends, and that nothing is left
				ctx, cancel := context.WithTimeout(context.Background(), ends)
				defer cancel()
				got = early.readsIn(ctx, true, of, put)
				want = got
				return
			}
			ctx := context.Background()
			want = plain.reads(ctx, false, put)
			got = early.readsIn(ctx, true, of, put)
		})
		if !assert.ObjectsAreEqual(want, got) {
			rt.Fatalf("with one page ahead: %v, without: %v", got, want)
		}
		if early.most > 2 || early.open.Load() != 0 {
			rt.Fatalf("%d pages were open at a time, and %d are in the end", early.most, early.open.Load())
		}
		for _, o := range early.asked {
			if (o.Continue == "") != (o.ResourceVersion == "7") {
				rt.Fatalf("a request for %q is at version %q", o.Continue, o.ResourceVersion)
			}
		}
	})
}

// bounded is a leaf whose request and page end with their time.
func (l leaf) bounded(most time.Duration) leaf {
	late := fmt.Errorf("a page did not come within %s: %w", most, context.DeadlineExceeded)
	if l.opens > most {
		l.opens, l.opensErr = most, late
	}
	if l.read > most {
		l.read, l.readErr = most, late
	}
	return l
}

func TestTheNextPageIsAskedForWhileOneIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := chain(5, leaf{items: 1, opens: time.Second, read: time.Second})
		begun := time.Now()
		got := b.reads(t.Context(), true, anything)
		assert.Equal(t, reading{[]string{"-0", "1-0", "2-0", "3-0", "4-0"}, "of ", ""}, got)
		assert.Equal(t, 7*time.Second, time.Since(begun), "two pages by themselves, and three while others are read")
		assert.Equal(t, int64(2), b.most)
		assert.Len(t, b.asked, 5)
	})
}

func TestAPageWhoseTokenComesLastIsFollowedByTheNextOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := chain(4, leaf{items: 1, last: true})
		got := b.reads(t.Context(), true, anything)
		assert.Equal(t, reading{[]string{"-0", "1-0", "2-0", "3-0"}, "of ", ""}, got)
		assert.Equal(t, int64(1), b.most)
	})
}

func TestPagesThatComeSlowlyAreAskedForOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := chain(5, leaf{items: 1, read: unhurried})
		assert.Empty(t, b.reads(t.Context(), true, anything).err)
		assert.Equal(t, int64(1), b.most)
	})
}

func TestAPageHasItsTimeWhenItsTurnComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := chain(3, leaf{items: 1})
		for _, token := range []string{"1", "2"} {
			l := b.leaves[token]
			l.read = pageTimeout - time.Second
			b.leaves[token] = l
		}
		assert.Empty(t, b.reads(t.Context(), true, anything).err, "the last page was asked for long before it was read")
		assert.Equal(t, int64(2), b.most)
		l := b.leaves["1"]
		l.read = pageTimeout + time.Second
		b.leaves["1"] = l
		assert.Contains(t, b.reads(t.Context(), true, anything).err, "a page did not come within 3m0s")
		assert.Zero(t, b.open.Load())
	})
}

// TestAPageThatWasNotWantedIsGivenUp has a server that says another token behind the items than
// before them.
func TestAPageThatWasNotWantedIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := chain(4, leaf{items: 1})
		pages := &ahead{source: b, most: pageTime, quick: true}
		names := []string{}
		put := func(o runtime.Object) error {
			names = append(names, o.(*metav1.PartialObjectMetadata).Name)
			return nil
		}
		_, err := pages.list(t.Context(), metav1.ListOptions{Limit: 9}, put)
		require.NoError(t, err)
		synctest.Wait()
		assert.Equal(t, int64(1), b.open.Load(), "the page of the other token")
		_, err = pages.list(t.Context(), metav1.ListOptions{Limit: 9, Continue: "3"}, put)
		require.NoError(t, err)
		pages.close()
		assert.Equal(t, []string{"-0", "3-0"}, names)
		assert.Zero(t, b.open.Load())
		tokens := []string{}
		for _, o := range b.asked {
			tokens = append(tokens, o.Continue)
		}
		slices.Sort(tokens)
		assert.Equal(t, []string{"", "1", "3"}, tokens)
	})
}
