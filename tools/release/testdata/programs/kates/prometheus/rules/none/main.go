// Command none imports the package of tests of kates/prometheus, which exports nothing.
package main

import (
	"fmt"

	_ "github.com/kates-go/kates/kates/prometheus/rules"
)

func main() {
	fmt.Println("rules")
	// Output: rules
}
