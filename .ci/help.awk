# Prints the targets of a Makefile in groups: "##@ Group", then "target: … ## what it makes".
/^##@ / { printf "\n%s\n", substr($0, 5) }
/^[a-z-]+:.*## / {
    text = $0
    sub(/.*## /, "", text)
    printf "  make %-20s%s\n", substr($1, 1, length($1) - 1), text
}
