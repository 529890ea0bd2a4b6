package kates

import (
	"context"
	"sync"
)

// writesAtOnce is how many objects one call writes at the same time.
const writesAtOnce = 10

// sideBySide calls do for 0 to n-1, up to writesAtOnce at the same time, and returns when all have
// returned. Once ctx has ended it begins no other call. It returns how many it has made; they are
// the first ones.
func sideBySide(ctx context.Context, n int, do func(i int)) (called int) {
	if n == 1 && ctx.Err() == nil {
		do(0)
		return 1
	}
	var calls sync.WaitGroup
	defer calls.Wait()
	places := make(chan struct{}, writesAtOnce)
	for ; called < n; called++ {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return called
		}
		i := called
		calls.Go(func() {
			defer func() { <-places }()
			do(i)
		})
	}
	return called
}
