//go:build lockorder

package lockorder

func init() { violated = func(text string) { panic(text) } }
