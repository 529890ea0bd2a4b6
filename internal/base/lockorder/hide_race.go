//go:build lockorder && race

package lockorder

import "runtime"

// hide keeps what this goroutine synchronizes from the race detector, until show.
func hide() { runtime.RaceDisable() }

func show() { runtime.RaceEnable() }
