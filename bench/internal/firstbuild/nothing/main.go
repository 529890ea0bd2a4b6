// Command nothing needs no library: tests build it.
package main

func main() {}
