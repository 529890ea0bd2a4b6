package source

import "time"

// pageBytes is about how many bytes a page has, once the size of the objects is known.
const pageBytes = 4 << 20

// pageLeast is the least number of objects in a page whose size follows their bytes. Objects of a
// megabyte come in pages of many times pageBytes, and not one by one.
const pageLeast = 50

// PageMost is the greatest number of objects in a page whose size follows their bytes.
const PageMost = 5000

// sizes says how many objects the next page of a list is to have, by those that came.
type sizes struct {
	items, bytes int64
	took         time.Duration // from the answer of the server to the last object
	remaining    *int64        // behind the last page, if the server has said it
}

// add notes a page that was read. A page whose bytes nobody has counted says nothing.
func (s *sizes) add(items, bytes int64, took time.Duration, remaining *int64) {
	if s.remaining = remaining; bytes > 0 {
		s.items += items
		s.bytes += bytes
		s.took += took
	}
}

// next is the size of the page after those that were added. It has about pageBytes. It comes in the
// time of [unhurried] if it comes as fast as the others: a server ends a request after a minute. Of
// what is left, remaining, the server may have said how much it is. Then the pages are about equal.
// Without a page there is no size but the first one.
func (s *sizes) next(first int64, remaining *int64) int64 {
	if s.items == 0 {
		return first
	}
	fit := pageBytes / max(s.bytes/s.items, 1)
	if remaining != nil && *remaining > fit && *remaining < ObjectsMost {
		pages := (*remaining + fit/2) / max(fit, 1)
		fit = (*remaining + pages - 1) / max(pages, 1)
	}
	if s.took > 0 {
		fit = min(fit, max(first, int64(float64(s.items)*float64(unhurried)/float64(s.took))))
	}
	return min(max(fit, pageLeast), max(first, PageMost))
}
