# SPDX-License-Identifier: Apache-2.0
# bash completion for primusctl and primus-submit. Commands and options come from the program itself (--words), so they
# never differ from what it takes.

__primusctl_jobs() {
        primusctl "${host[@]}" list --json "$@" 2>/dev/null | sed -n 's/^ *"job": \([0-9]*\),$/\1/p'
}

__primusctl_roles() {
        primusctl "${host[@]}" status --json "$@" 2>/dev/null |
                sed -n '/^  "roles": \[/,/^  \]/s/^ *"name": "\([^"]*\)",$/\1/p'
}

__primusctl_nodes() {
        primusctl "${host[@]}" nodes --json 2>/dev/null | sed -n 's/^ *"name": "\([^"]*\)",$/\1/p'
}

__primusctl_savepoints() {
        primusctl "${host[@]}" savepoint list --json 2>/dev/null | sed -n 's/^ *"name": "\([^"]*\)",$/\1/p'
}

__primusctl_checkpoints() {
        primusctl "${host[@]}" checkpoints list --json 2>/dev/null | sed -n 's/^ *"checkpoint": \([0-9]*\),$/\1/p'
}

__primusctl_models() {
        primusctl "${host[@]}" model list --json 2>/dev/null | sed -n 's/^ *"name": "\([^"]*\)",$/\1/p' | sort -u
}

__primusctl_providers() {
        primusctl "${host[@]}" provider list --json 2>/dev/null | sed -n 's/^ *"name": "\([^"]*\)",$/\1/p'
}

__primusctl_tasks() {
        primusctl "${host[@]}" data --json "$@" 2>/dev/null | sed -n 's/^ *"task": "\([^"]*\)",$/\1/p'
}

__primusctl_tokens() {
        primusctl "${host[@]}" token list --json 2>/dev/null | sed -n 's/^ *"token": "\([^"]*\)",$/\1/p'
}

__primusctl_files() {
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}

# Names are others' text, and "compgen -W" would run the $(COMMAND) that is in one: they are split and compared here, and
# what would mean something else to the shell is not offered.
__primusctl_match() {
        local word
        local -a words
        read -r -d '' -a words <<< "$1"
        for word in "${words[@]}"; do
                [[ $word == "$cur"* && $word != *[^[:alnum:]_.:/=@%+,-]* ]] && COMPREPLY+=("$word")
        done
}

__primusctl_reply() {
        COMPREPLY=()
        __primusctl_match "$1"
        # An option that wants a value is not finished.
        [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
        return 0
}

_primusctl() {
        local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command= i word
        local -a host=() args=()
        COMPREPLY=()

        # "--option=value" arrives as three words.
        if [[ $cur == '=' ]]; then
                cur=
        elif [[ $before == '=' && COMP_CWORD -ge 2 ]]; then
                before=${COMP_WORDS[COMP_CWORD - 2]}
        fi
        for ((i = 1; i < COMP_CWORD; i++)); do
                word=${COMP_WORDS[i]}
                case $word in
                -H | --host)
                        [[ ${COMP_WORDS[i + 1]} == '=' ]] && ((i++))
                        host=(-H "${COMP_WORDS[++i]}")
                        ;;
                --)
                        [[ $command == run ]] || continue
                        # What follows is somebody else's command line.
                        if declare -F _command_offset > /dev/null; then
                                _command_offset $((i + 1))
                        elif ((COMP_CWORD == i + 1)); then
                                mapfile -t COMPREPLY < <(compgen -c -- "$cur")
                        else
                                __primusctl_files
                        fi
                        return
                        ;;
                -* | =) ;;
                *)
                        if [[ -z $command ]]; then
                                command=$word
                        elif [[ ${COMP_WORDS[i - 1]} != '=' ]]; then
                                args+=("$word")
                        fi
                        ;;
                esac
        done

        case $before in
        --color) __primusctl_reply 'auto always never'; return ;;
        --visible) __primusctl_reply 'owner group pool all'; return ;;
        --state)
                if [[ $command == data ]]; then
                        __primusctl_reply 'PENDING LEASED FAILED'
                        return
                fi
                __primusctl_reply 'SUBMITTED QUEUED STARTING RUNNING SUSPENDED STOPPING SUCCEEDED FAILED KILLED'
                return
                ;;
        --follow) [[ $command == submit ]] && return ;;
        --hosts) __primusctl_reply "$(__primusctl_nodes)"; return ;;
        --replace) [[ $command == token ]] && __primusctl_reply "$(__primusctl_nodes)"; return ;;
        -a | --attach)
                if [[ $command == notebook || $command == tensorboard ]]; then
                        __primusctl_reply "$(__primusctl_jobs)"
                        return
                fi
                ;;
        --token-file | --secret | --key | --tensorboard | --dir | --logdir) __primusctl_files; return ;;
        -H | --host)
                if declare -F _known_hosts_real > /dev/null; then
                        _known_hosts_real -- "$cur"
                fi
                return
                ;;
        esac

        if [[ -z $command ]]; then
                if [[ $cur == -* ]]; then
                        __primusctl_reply "$(primusctl --words 2>/dev/null | grep '^-')"
                else
                        __primusctl_reply "$(primusctl --words 2>/dev/null | grep -v '^-') help"
                fi
                return
        fi
        if [[ $cur == -* ]]; then
                __primusctl_reply "$(primusctl --words "$command" 2>/dev/null)"
                return
        fi
        case $command in
        submit | validate | backup | restore) __primusctl_files ;;
        config)
                __primusctl_files
                __primusctl_match "$(__primusctl_jobs -a)"
                ;;
        restore | backup) __primusctl_files ;;
        status | events | get | why | rerun) ((${#args[@]} == 0)) && __primusctl_reply "$(__primusctl_jobs -a)" ;;
        wait | kill | succeed | delete | suspend | resume | requeue) __primusctl_reply "$(__primusctl_jobs)" ;;
        banner | login) ;; # words of one's own
        update) ((${#args[@]} == 0)) && __primusctl_reply "$(__primusctl_jobs)" ;;
        role)
                case ${#args[@]}:${args[0]} in
                0:*) __primusctl_reply 'add remove' ;;
                1:*) __primusctl_reply "$(__primusctl_jobs)" ;;
                2:add) __primusctl_files ;;
                2:remove) __primusctl_reply "$(__primusctl_roles "${args[1]}")" ;;
                esac
                ;;
        scale)
                if ((${#args[@]} == 0)); then
                        __primusctl_reply "$(__primusctl_jobs)"
                else
                        __primusctl_reply "$(__primusctl_roles "${args[0]}" | sed 's/$/=/')"
                fi
                ;;
        stacks | trace | top | restart | actors)
                if ((${#args[@]} == 0)); then
                        __primusctl_reply "$(__primusctl_jobs)"
                else
                        __primusctl_reply "$(__primusctl_roles "${args[0]}")"
                fi
                ;;
        exec | shell | forward) ((${#args[@]} == 0)) && __primusctl_reply "$(__primusctl_jobs)" ;;
        data)
                case ${#args[@]}:${args[0]} in
                0:*) __primusctl_reply "$(__primusctl_jobs -a) retry skip add replace pause resume end remove weight" ;;
                1:retry | 1:skip | 1:add | 1:replace | 1:pause | 1:resume | 1:end | 1:remove | 1:weight) __primusctl_reply "$(__primusctl_jobs)" ;;
                2:add | 2:replace) __primusctl_files ;;
                *:retry) __primusctl_reply "$(__primusctl_tasks --failed "${args[1]}")" ;;
                *:skip) __primusctl_reply "$(__primusctl_tasks "${args[1]}")" ;;
                esac
                ;;
        metrics | tensorboard) __primusctl_reply "$(__primusctl_jobs -a)" ;;
        search)
                case ${#args[@]}:${args[0]} in
                0:*) __primusctl_reply 'show preview continue replay submit fork why kill' ;;
                1:show | 1:continue | 1:replay | 1:fork | 1:why | 1:kill) __primusctl_reply "$(__primusctl_jobs -a)" ;;
                1:preview | 1:submit) __primusctl_files ;;
                esac
                ;;
        checkpoints)
                case ${#args[@]}:${args[0]} in
                0:*) __primusctl_reply 'list gc pin unpin forget' ;;
                1:list | 1:gc) __primusctl_reply "$(__primusctl_jobs -a)" ;;
                *:pin | *:unpin | *:forget) __primusctl_reply "$(__primusctl_checkpoints)" ;;
                esac
                ;;
        model)
                case ${#args[@]}:${args[0]} in
                0:*) __primusctl_reply 'list register edit archive unarchive' ;;
                2:register) __primusctl_reply "$(__primusctl_checkpoints)" ;;
                1:*) __primusctl_reply "$(__primusctl_models)" ;;
                esac
                ;;
        provider)
                case ${#args[@]}:${args[0]} in
                0:*) __primusctl_reply 'list hosts plan up down hold release' ;;
                1:up) __primusctl_reply "$(__primusctl_providers)" ;;
                1:down) __primusctl_reply "$(__primusctl_nodes)" ;;
                1:hold | 1:release) __primusctl_reply "$(__primusctl_providers) $(__primusctl_nodes)" ;;
                esac
                ;;
        savepoint)
                case ${#args[@]}:${args[0]} in
                0:*) __primusctl_reply 'create list show restore delete' ;;
                1:create) __primusctl_reply "$(__primusctl_jobs)" ;;
                1:show | 1:restore | *:delete) __primusctl_reply "$(__primusctl_savepoints)" ;;
                2:restore) __primusctl_files ;;
                esac
                ;;
        logs)
                if ((${#args[@]} == 0)); then
                        __primusctl_reply "$(__primusctl_jobs -a) $(__primusctl_roles)"
                elif ((${#args[@]} == 1)) && [[ ${args[0]} == [0-9]* ]]; then
                        __primusctl_reply "$(__primusctl_roles "${args[0]}")"
                fi
                ;;
        node)
                case ${#args[@]}:${args[0]} in
                0:*) __primusctl_reply 'show events cordon uncordon drain disable enable label maintenance declare-dead remove' ;;
                2:maintenance) __primusctl_reply cancel ;;
                1:* | *:cordon | *:uncordon | *:drain) __primusctl_reply "$(__primusctl_nodes)" ;;
                esac
                ;;
        replace)
                case ${#args[@]} in
                0) __primusctl_reply "$(__primusctl_jobs)" ;;
                1) __primusctl_reply "$(__primusctl_nodes)" ;;
                esac
                ;;
        token)
                case ${#args[@]}:${args[0]} in
                0:*) __primusctl_reply 'create list revoke' ;;
                1:revoke) __primusctl_reply "$(__primusctl_tokens)" ;;
                esac
                ;;
        join | doctor)
                if ((${#args[@]} == 0)) && declare -F _known_hosts_real > /dev/null; then
                        _known_hosts_real -- "$cur"
                fi
                ;;
        help) __primusctl_reply "$(primusctl --words 2>/dev/null | grep -v '^-')" ;;
        run)
                if ((${#args[@]} == 0)); then
                        mapfile -t COMPREPLY < <(compgen -c -- "$cur")
                else
                        __primusctl_files
                fi
                ;;
        esac
        return 0
}

_primus_submit() {
        local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
        COMPREPLY=()

        case $before in
        --primus_conf | =) __primusctl_files ;;
        --wait_app_completion) __primusctl_reply 'true false' ;;
        --command) __primusctl_reply submit ;;
        *) __primusctl_reply '--primus_conf --wait_app_completion --command --help --version --host= --json --color=' ;;
        esac
        return 0
}

complete -F _primusctl primusctl
complete -F _primus_submit primus-submit
